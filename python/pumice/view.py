"""Clouds and voxels in the viewer of Rerun, where the package rerun-sdk is installed.

The caller starts Rerun and sets its time, as for anything else that is logged there::

    import rerun
    rerun.init("street", spawn=True)
    pumice.view.log_rerun("scan", pumice.simulate(seed=1))
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from . import _C
from .points import PointCloud

if TYPE_CHECKING:
    from torch import Tensor

    from .tensor import SparseTensor

    Array = Union[np.ndarray, Tensor]


def log_rerun(
    path: str,
    what: PointCloud | SparseTensor | Array,
    *,
    labels: Array | None = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
    colors: Array | None = None,
    size: float | Sequence[float] = 1.0,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    radius: float | None = None,
    recording: Any = None,
) -> None:
    """Logs points at the entity `path`.

    what: a cloud; positions [P, 3 or more] in metres; or a sparse tensor of three axes, whose cells
    are spheres as wide as a cell. `size` (metres a cell of the finest level) and `origin` (where cell
    0 begins) are for these; items of a batch of several are at path/0, path/1, …
    labels: integers of at least 0, [P], the class of each; by default those of the cloud; `names` are the
    classes' names, by number. colors: [P, 3 or 4], uint8, or floats from 0 to 1.
    radius: metres; by default Rerun's own, and half a cell. recording: by default the current one.

    Raises ImportError where rerun-sdk is not installed.
    """
    rerun = _rerun()
    items, positions, cell = _positions(what, size, origin)
    if labels is None and isinstance(what, PointCloud):
        labels = what.labels
    classes = _rows(labels, "labels", len(positions), 1)
    shades = _rows(colors, "colors", len(positions), 2)
    if classes is not None and (classes.dtype.kind not in "iu" or (classes < 0).any()):
        raise _C.UserError("labels have to be integers of at least 0: Rerun knows no others")
    if names is not None:
        pairs = names.items() if isinstance(names, Mapping) else enumerate(names)
        context = rerun.AnnotationContext([(int(number), str(name)) for number, name in pairs])
        rerun.log(path, context, static=True, recording=recording)
    radius = cell if radius is None else radius
    for item in range(int(items.max()) + 1) if items is not None and len(items) else [None]:
        mine = slice(None) if item is None else items == item
        points = rerun.Points3D(
            positions[mine],
            class_ids=None if classes is None else classes[mine].astype(np.uint16),
            colors=None if shades is None else shades[mine],
            radii=radius,
        )
        rerun.log(path if item is None else f"{path}/{item}", points, recording=recording)


def _rerun() -> Any:
    try:
        return importlib.import_module("rerun")
    except ModuleNotFoundError as error:
        if error.name != "rerun":
            raise
        raise ImportError(
            "pumice.view.log_rerun needs the package rerun-sdk, which is not installed: "
            "pip install rerun-sdk"
        ) from error


def _positions(
    what: Any, size: float | Sequence[float], origin: Sequence[float]
) -> tuple[np.ndarray | None, np.ndarray, float | None]:
    """(batch item of each, where there are several; float32 [P, 3]; radius of a cell)."""
    if isinstance(what, PointCloud):
        return None, what.positions, None
    if not hasattr(what, "coords"):
        positions = _array(what)
        if positions.ndim != 2 or positions.shape[1] < 3:
            raise _C.UserError(f"points have shape {positions.shape}: give [points, 3 or more]")
        return None, positions[:, :3].astype(np.float32), None
    if what.dimension != 3:
        raise _C.UserError(f"a tensor of {what.dimension} axes: Rerun shows those of 3")
    cells = _array(what.indices)
    sides = np.broadcast_to(np.asarray(size, np.float32), 3) * np.asarray(what.stride, np.float32)
    positions = (cells[:, 1:] + np.float32(0.5)) * sides + np.asarray(origin, np.float32)
    items = cells[:, 0] if what.batch_size > 1 else None
    return items, positions.astype(np.float32), float(sides.min()) / 2


def _rows(values: Any, name: str, rows: int, axes: int) -> np.ndarray | None:
    if values is None:
        return None
    array = _array(values)
    if array.ndim != axes or len(array) != rows:
        raise _C.UserError(
            f"{name} have shape {array.shape}: give one for each of {rows} points"
        )
    return array


def _array(values: Any) -> np.ndarray:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
