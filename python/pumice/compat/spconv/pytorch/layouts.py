"""Weights of all versions of spconv, as they are loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from .... import _C

# Where the axes of [out, *kernel, in] lie in each layout.
_AXES = {
    "KRSC": lambda d: (*range(d + 2),),
    "RSCK": lambda d: (d + 1, *range(d), d),
    "RSKC": lambda d: (d, *range(d), d + 1),
}


def to_krsc(
    name: str, weight: Tensor, shape: Sequence[int], layout: str, pointwise: bool
) -> Tensor:
    """A loaded weight as [out, *kernel, in], which is `shape`.

    Its layout is told by its own shape, or, where that allows two, by `layout`: "RSCK" (spconv 1
    and mmcv), "RSKC" (2.0 and 2.1, native) or "KRSC" (2.2 and later). Raises UserError where
    neither tells. `pointwise`: spconv multiplies by the memory of a 1×1 weight as if it were
    [in, out], whatever its shape says, in all versions; so that is what is kept.
    """
    if layout not in ("", *_AXES):
        raise _C.UserError(f"SAVED_WEIGHT_LAYOUT = {layout!r}: there are 'KRSC', 'RSKC' and 'RSCK'")
    target = tuple(shape)
    if pointwise and math.prod(weight.shape) == math.prod(target):
        return weight.reshape(target)
    dimension = len(target) - 2
    if weight.dim() != dimension + 2:
        return weight  # PyTorch says what is wrong with it
    laid_out = {layout: weight.permute(axes(dimension)) for layout, axes in _AXES.items()}
    fitting = {layout: w for layout, w in laid_out.items() if tuple(w.shape) == target}
    if layout:
        return fitting.get(layout, weight).contiguous()
    if "KRSC" in fitting or not fitting:
        return weight
    if len(fitting) == 1:
        return next(iter(fitting.values())).contiguous()
    raise _C.UserError(
        f"{name}: a weight of shape {tuple(weight.shape)} may be of spconv 1 (RSCK) or of 2.0 and "
        "2.1 (RSKC): set pumice.compat.spconv.constants.SAVED_WEIGHT_LAYOUT, or the environment "
        "variable SPCONV_SAVED_WEIGHT_LAYOUT, to the one it is"
    )
