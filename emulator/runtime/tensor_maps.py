"""Tensor maps of a launch: an array and the form of its copies."""

from __future__ import annotations

from typing import Any, get_args

from ..checked import one_of, shown, whole
from ..errors import LaunchError
from ..language.tensor_maps import ELEMENTS, MAX_BOX, SWIZZLES, Fill, Swizzle, TensorMapForm
from ..language.types import Scalar, from_dtype
from ..tracebacks import without_own_frames
from .arrays import DeviceArray, MappedArray, NewArray, checked_array


@without_own_frames
def tensor_map(array: Any, *, box: tuple[int, ...], swizzle: Swizzle = 0, fill: Fill = "zero") -> MappedArray:
    """Return an array as the argument of a parameter `st.TensorMap`. Raises LaunchError for a form that the hardware does not have.

    array : NumPy array, `st.empty` or `DeviceArray` of 1 to 5 dimensions. Elements of the last axis are adjacent; the other strides
        are multiples of 16 bytes.
    box : elements of a copy along each axis, 1 to 256; a row along the last axis is a multiple of 16 bytes.
    swizzle : 32, 64 or 128, the bytes of a row of the box, whose units of 16 bytes are permuted, as `st.matrix_descriptor` reads them.
    fill : value of elements beyond the array, "zero" or "nan".
    """
    if isinstance(array, NewArray):
        host = array.template()
    else:
        host = array.host if isinstance(array, DeviceArray) else checked_array("array", array)
    element = from_dtype(host.dtype)
    if not isinstance(element, Scalar) or element not in ELEMENTS:
        raise LaunchError(f"array has elements of {host.dtype}: give numbers of 1 to 8 bytes")
    if swizzle not in SWIZZLES:
        raise LaunchError(f"swizzle is 0, 32, 64 or 128, not {shown(swizzle)}")
    one_of("fill", fill, get_args(Fill))
    if not isinstance(box, tuple):
        raise LaunchError(f"box is a tuple of numbers, not {shown(box)}")
    extents = tuple(whole(f"box[{n}]", extent, 1, MAX_BOX, "a tensor map") for n, extent in enumerate(box))
    *strides, inner = host.strides or (0,)
    form = TensorMapForm(element, host.shape[::-1], tuple(strides[::-1]), extents[::-1], swizzle, fill)
    if problem := form.problem():
        raise LaunchError(f"array and box make no tensor map: {problem}")
    if inner != element.size:
        raise LaunchError("elements of the last axis of array are not adjacent: give np.ascontiguousarray(array)")
    return MappedArray(array, form)


__all__ = ["tensor_map"]
