"""The remedy of every racy kernel, inserted by a program: the corrected kernel has no such race."""

from pathlib import Path

import pytest

from tests.checkers.corpus import PAIRS, Pair
from tests.checkers.insertion import corrected_module
from tests.checkers.racy_kernels import RACY
from tests.checkers.test_remedies import check_corrected, remedies
from tests.table_checks import check_each

WITHOUT_BARRIER = {
    "blocks_count_by_block_scope", "blocks_share_an_output",
    "counter_reset_by_another_block_than_the_last", "compaction_with_shared_slots", "everybody_writes_one_cell",
    "fence_of_the_block_only", "flag_between_blocks", "flag_read_plainly", "halo_written_by_two_blocks", "hand_over_without_a_release",
    "histogram_without_atomics", "in_place_stencil", "last_block_without_a_fence", "queue_length_read_plainly",
    "release_to_its_own_block", "sum_into_one_cell", "table_made_by_the_first_block", "release_by_a_failed_swap", "release_by_a_poll",
    "release_that_a_store_ends", "node_linked_after_the_push", "barrier_of_blocks_without_a_fence", "spin_lock_without_a_fence",
    "lock_released_by_a_plain_store", "sum_behind_the_unlock", "lock_of_the_scope_of_a_block", "sum_read_outside_the_lock",
    "flag_not_awaited", "flag_awaited_by_one_thread", "flag_set_before_the_data", "double_checked_flag_without_fences",
    "mailbox_freed_before_it_is_read", "ring_head_moved_before_the_slot_is_full", "queue_item_stored_behind_its_count",
    "ticket_passed_on_without_a_release", "block_counted_before_its_sum", "block_barrier_passed_twice_by_one_count",
    "prefix_published_to_its_own_block", "tile_handed_over_without_a_fence", "consumer_without_a_wait",
    "buffer_filled_again_before_the_copy_has_read_it", "bulk_store_without_a_fence", "product_without_a_fence_of_its_operand",
    "operand_written_before_the_wait", "block_barrier_in_place_of_one_of_the_cluster", "access_between_arrival_and_wait",
    "read_of_a_block_that_may_have_ended", "write_to_a_block_that_may_not_have_started", "arrival_before_the_data",
    "barrier_of_another_cluster", "sum_of_blocks_by_copies",
}  # fmt: skip
"""Kernels with races between blocks, or of one statement: their advice is another one."""
SYNCHRONISATION = {"race", "barrier", "convergence"}


def test_corrected_kernels() -> None:
    check_each(RACY.values(), check_corrected, lambda racy: racy.name)


def test_corrected_kernels_of_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(pair: Pair) -> None:
        result = pair.launch(False, "numpy")
        inserted = remedies(result)
        assert pair.launch(False, "jit").faults == result.faults
        assert bool(inserted) == (pair.name not in WITHOUT_BARRIER)
        if inserted:
            PAIRS.clear()  # the copy of the module adds its kernels
            corrected_module(pair.kernel, inserted, tmp_path)
            faults = PAIRS[pair.name].launch(False, "numpy").faults
            assert not SYNCHRONISATION & {fault.kind for fault in faults}, "\n".join(map(str, faults))

    racy = [pair for pair in PAIRS.values() if pair.fault == "race"]
    for name, pair in dict(PAIRS).items():
        monkeypatch.setitem(PAIRS, name, pair)  # restored after the test
    check_each(racy, check, lambda pair: pair.name)
