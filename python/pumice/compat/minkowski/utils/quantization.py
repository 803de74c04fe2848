"""Points to cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...foreign import PeerAssertionError


def sparse_quantize(
    coordinates: Any, features: Any = None, labels: Any = None, ignore_label: int = -100,
    return_index: bool = False, return_inverse: bool = False, return_maps_only: bool = False,
    quantization_size: Any = None, device: str = "cpu",
) -> Any:
    """Distinct int32 cells of points [P, D], in the order in which they first occur, with the features of
    the first point of each; a cell whose points differ in label gets `ignore_label`."""
    numpy = isinstance(coordinates, np.ndarray)
    points = torch.as_tensor(coordinates)
    if quantization_size is not None:
        points = points / torch.as_tensor(quantization_size, dtype=torch.float64)
    cells = torch.floor(points).int() if points.is_floating_point() else points.int()
    first, inverse = unique_coordinate_map(cells.to(device))
    cells = cells.to(device)[first]

    def like(value: torch.Tensor) -> Any:
        return value.cpu().numpy() if numpy else value

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
        result.append(features[index] if numpy else features[first.to(features.device)])
    if labels is not None:
        result.append(values)
    if return_index:
        result.append(index)
    if return_inverse:
        result.append(back)
    return result[0] if len(result) == 1 else tuple(result)


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
