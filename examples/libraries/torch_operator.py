"""An operator of PyTorch: on a GPU its kernel runs by nvcc, on the host by an emulator."""

import simtbed as st
import torch


@st.kernel
def add_scaled(x: st.Global[st.f32], y: st.Global[st.f32], out: st.Global[st.f32], factor: st.f32, n: st.i32) -> None:
    """out = x + factor y."""
    i = st.block.x * st.block_dim.x + st.thread.x
    if i < n:
        out[i] = x[i] + factor * y[i]


@torch.library.custom_op("simtbed::scaled_sum", mutates_args=())
def scaled_sum(x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
    out = torch.empty_like(x)
    args = (x.detach(), y.detach(), st.device_view(out), factor, x.numel())
    stream = st.Stream(torch.cuda.current_stream()) if x.is_cuda else None
    st.launch(
        add_scaled,
        grid=-(-x.numel() // 256),
        block=256,
        args=args,
        engine="cuda" if x.is_cuda else "jit",
        stream=stream,
    )
    return out


@scaled_sum.register_fake
def _(x: torch.Tensor, y: torch.Tensor, factor: float) -> torch.Tensor:
    return torch.empty_like(x)


if __name__ == "__main__":
    x = torch.arange(1000, dtype=torch.float32)
    print(scaled_sum(x, torch.ones(1000), 0.5)[:4])
