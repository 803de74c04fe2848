"""Points to cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...._checks import kind_of, shown
from ...foreign import PeerAssertionError
from .hashing import fnv_hash_vec, ravel_hash_vec  # noqa: F401


def sparse_quantize(
    coordinates: Any, features: Any = None, labels: Any = None, ignore_label: int = -100,
    return_index: bool = False, return_inverse: bool = False, return_maps_only: bool = False,
    quantization_size: Any = None, device: str = "cpu",
) -> Any:
    """Distinct int32 cells of points [P, D], in the order in which they first occur, with the features of
    the first point of each; a cell whose points differ in label gets `ignore_label`.

    As in MinkowskiEngine cells and maps are tensors, of points in an array too, and arrays only beside labels; features
    come as they were given. Cells are what points divided by `quantization_size` are in their own type, rounded down.
    """
    numpy = isinstance(coordinates, np.ndarray)
    points = _points(coordinates)
    if features is not None:
        _check_features(features, points, numpy)
    if quantization_size is not None:
        _check_size(quantization_size, points.shape[1])
        points = torch.as_tensor(_divided(coordinates if numpy else points, quantization_size))
    cells = torch.floor(points).int() if points.is_floating_point() else points.int()
    first, inverse = unique_coordinate_map(cells.to(device))
    cells = cells.to(device)[first]

    def like(value: torch.Tensor) -> Any:
        return value.cpu().numpy() if numpy and labels is not None else value

    index, back = like(first), like(inverse)
    if labels is not None:
        given = torch.as_tensor(labels)
        if given.dim() == 2 and given.shape[1] == 1:
            given = given[:, 0]
        if given.shape != points.shape[:1]:
            raise PeerAssertionError(
                f"sparse_quantize: labels have shape {tuple(given.shape)}: give one for each of "
                f"{len(points)} points, [P] or [P, 1]"
            )
        merged = given[first.cpu()].clone()
        differs = given != merged[inverse.cpu()]
        merged[inverse.cpu()[differs]] = ignore_label
        values = like(merged)
    if return_maps_only:
        return (index, back) if return_inverse else index
    result = [like(cells)]
    if features is not None:
        result.append(features[first.to(features.device) if isinstance(features, torch.Tensor) else first.cpu().numpy()])
    if labels is not None:
        result.append(values)
    if return_index:
        result.append(index)
    if return_inverse:
        result.append(back)
    return result[0] if len(result) == 1 else tuple(result)


def _points(coordinates: Any) -> torch.Tensor:
    """[P, D]. Raises PeerAssertionError for what is no matrix of numbers."""
    try:
        points = torch.as_tensor(coordinates)
    except (TypeError, ValueError, RuntimeError):
        raise PeerAssertionError(
            f"sparse_quantize: coordinates {shown(coordinates)}: give a NumPy array or a tensor [P, D]"
        ) from None
    if points.dim() != 2:
        raise PeerAssertionError(f"sparse_quantize: coordinates have shape {tuple(points.shape)}: give [P, D]")
    return points


def _check_features(features: Any, points: torch.Tensor, numpy: bool) -> None:
    """Raises PeerAssertionError unless there is a row for each point, as an array beside arrays or a tensor."""
    if not isinstance(features, torch.Tensor) and not (numpy and isinstance(features, np.ndarray)):
        wanted = "a NumPy array" if numpy else "a tensor"
        raise PeerAssertionError(
            f"sparse_quantize: features are {kind_of(features)}: give {wanted} [P, C], as the coordinates are"
        )
    if features.shape[:1] != points.shape[:1]:
        raise PeerAssertionError(
            f"sparse_quantize: features have shape {tuple(features.shape)}: give one row for each of {len(points)} "
            "points, [P, C]"
        )


def _check_size(quantization_size: Any, axes: int) -> None:
    """Raises PeerAssertionError unless it is one positive number, or one for each axis."""
    try:
        size = torch.as_tensor(quantization_size, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        size = torch.zeros(1)
    if size.dim() > 1 or size.numel() not in (1, axes) or not bool((size > 0).all()):
        raise PeerAssertionError(
            f"sparse_quantize: quantization_size = {quantization_size!r}: give a positive number, or one for each of "
            f"{axes} axes"
        )


def _divided(points: Any, size: Any) -> Any:
    """An array by float64 numbers and a tensor by float32 ones, one for each axis; both by one number as they do: which cell
    a point at a border is in depends on that."""
    if np.isscalar(size):
        return points / size
    numbers = np.array([float(number) for number in np.ravel(size)])
    return points / (numbers if isinstance(points, np.ndarray) else torch.from_numpy(numbers).float().to(points.device))


def unique_coordinate_map(
    coordinates: torch.Tensor, tensor_stride: Any = 1
) -> tuple[torch.Tensor, torch.Tensor]:
    """int64 (the first of each distinct row, which of those each row is)."""
    _, inverse = torch.unique(coordinates, dim=0, return_inverse=True)
    count = int(inverse.max()) + 1 if len(inverse) else 0
    rows = torch.arange(len(inverse), device=inverse.device)
    first = rows.new_full((count,), len(inverse)).scatter_reduce(0, inverse, rows, "amin")
    order = torch.argsort(first)
    place = torch.empty_like(order)
    place[order] = torch.arange(count, device=order.device)
    return first[order], place[inverse]


def quantize(coords: Any) -> tuple[Any, Any]:
    """int64 (the first of each distinct row of coords int32 [P, D], which of those each row is), of NumPy or
    PyTorch as `coords` are."""
    first, inverse = unique_coordinate_map(_cells(coords))
    return _like(coords, first), _like(coords, inverse)


def quantize_label(coords: Any, labels: Any, ignore_label: int) -> tuple[Any, Any, Any]:
    """`quantize`, and the label of each distinct row: `ignore_label` where its rows differ in it."""
    first, inverse = unique_coordinate_map(_cells(coords))
    given = torch.as_tensor(labels)
    if given.shape != (len(coords),):
        raise PeerAssertionError(
            f"quantize_label: labels have shape {tuple(given.shape)}: give one for each of {len(coords)} rows"
        )
    merged = given[first]
    merged[inverse[given != merged[inverse]]] = ignore_label
    return tuple(_like(coords, part) for part in (first, inverse, merged))  # type: ignore[return-value]


def _cells(coords: Any) -> torch.Tensor:
    cells = torch.as_tensor(coords)
    if cells.dim() != 2 or cells.is_floating_point():
        raise PeerAssertionError(
            f"coords are {cells.dtype} of shape {tuple(cells.shape)}: give int32 [P, D]"
        )
    return cells


def _like(given: Any, value: torch.Tensor) -> Any:
    return value.numpy() if isinstance(given, np.ndarray) else value
