"""The language's words in findings as instructions of PTX, for languages with inline PTX."""

WORDS = {
    "st.wgmma_fence()": "wgmma.fence",
    "without a wgmma_fence": "without a wgmma.fence",
    "st.wgmma_commit()": "wgmma.commit_group",
    "st.wgmma_wait()": "wgmma.wait_group",
    "st.bulk_wait_read()": "cp.async.bulk.wait_group.read",
    "st.fence_async()": "fence.proxy.async",
    "no fence_async follows": "no fence.proxy.async follows",
    "st.mbarrier_init": "mbarrier.init",
}
