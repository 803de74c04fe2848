"""Shows clouds and voxels in the viewer of Rerun, where the package rerun-sdk is installed.

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
from ._checks import real_array
from .points import PointCloud, Voxels

if TYPE_CHECKING:
    from torch import Tensor

    from .tensor import SparseTensor
    from .voxels import TensorVoxels

    Array = Union[np.ndarray, Tensor]


def log_rerun(
    path: str,
    what: PointCloud | Voxels | TensorVoxels | SparseTensor | Array,
    *,
    labels: Array | None = None,
    names: Sequence[str] | Mapping[int, str] | None = None,
    colors: Array | None = None,
    size: float | Sequence[float] = 1.0,
    origin: Sequence[float] = (0.0, 0.0, 0.0),
    radius: float | None = None,
    recording: Any = None,
) -> None:
    """Logs points at an entity of Rerun. Cells are spheres as wide as a cell; items of a batch of several
    are at path/0, path/1, …

    Args:
        path: of the entity.
        what: a cloud; positions [P, 3 or more] in metres; voxels; or a sparse tensor of three axes.
        labels: integers of at least 0, [P], the class of each; default: those of the cloud.
        names: the classes' names, by number.
        colors: [P, 3 or 4], uint8, or floats from 0 to 1.
        size: of voxels, metres a cell of the finest level, one number or one an axis.
        origin: of voxels, where cell 0 begins.
        radius: metres; default: Rerun's own, and half a cell.
        recording: default: the current one.
    Returns:
        None.
    Raises:
        UserError: for shapes that do not fit each other.
        ImportError: where rerun-sdk is not installed.
    Waits:
        For a GPU, where `what` lies there.
    Example:
        >>> import rerun                                                      # doctest: +SKIP
        >>> rerun.init("street", spawn=True)                                  # doctest: +SKIP
        >>> pumice.view.log_rerun("scan", pumice.simulate(seed=1))            # doctest: +SKIP
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
    if isinstance(what, Voxels):
        return _cells(what.coordinates, (1, 1, 1), size, origin)  # of one item
    what = getattr(what, "tensor", what)  # of TensorVoxels
    if not hasattr(what, "coords"):
        positions = _array(what)
        if positions.ndim != 2 or positions.shape[1] < 3:
            raise _C.UserError(f"points have shape {positions.shape}: give [points, 3 or more]")
        return None, positions[:, :3].astype(np.float32), None
    if what.dimension != 3:
        raise _C.UserError(f"a tensor of {what.dimension} axes: Rerun shows those of 3")
    cells = _array(what.indices)
    _, positions, radius = _cells(cells, what.stride, size, origin)
    return cells[:, 0] if what.batch_size > 1 else None, positions, radius


def _cells(
    cells: np.ndarray, stride: Sequence[int], size: float | Sequence[float], origin: Sequence[float]
) -> tuple[np.ndarray | None, np.ndarray, float | None]:
    """What `_positions` gives, of the middles of cells [N, 4]."""
    sides = np.broadcast_to(np.asarray(size, np.float32), 3) * np.asarray(stride, np.float32)
    positions = (cells[:, 1:] + np.float32(0.5)) * sides + np.asarray(origin, np.float32)
    return None, positions.astype(np.float32), float(sides.min()) / 2


def _rows(values: Any, name: str, rows: int, axes: int) -> np.ndarray | None:
    if values is None:
        return None
    array = _array(values, name)
    if array.ndim != axes or len(array) != rows:
        raise _C.UserError(
            f"{name} have shape {array.shape}: give one for each of {rows} points"
        )
    return array


def _array(values: Any, name: str = "points") -> np.ndarray:
    return real_array(name, values)
