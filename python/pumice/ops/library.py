"""The operators of torch.library, `torch.ops.pumice.*`, for graphs: traced, compiled, exported.

Sites and maps are tokens (see tokens.cpp), rows of outputs are given, so that fake tensors know
all shapes. Eager calls take a shorter way, in the modules beside this one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import _C
from ..window import Window
from . import modes

library = torch.library.Library("pumice", "DEF")

_SCHEMAS = (
    "submanifold_map(Tensor sites, int[] window) -> Tensor",
    "strided_map(Tensor sites, Tensor indices, int[] window, bool cell) -> "
    "(Tensor, Tensor, Tensor)",
    "transposed_map(Tensor sites, Tensor fine, int[] window) -> Tensor",
    "inverse_map(Tensor sites, Tensor fine, int[] window) -> Tensor",
    "convolution(Tensor features, Tensor weight, Tensor? bias, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int groups) -> Tensor",
    "convolution_input_gradient(Tensor grad_output, Tensor weight, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int groups) -> Tensor",
    "convolution_weight_gradient(Tensor features, Tensor grad_output, Tensor map, SymInt in_rows, "
    "SymInt out_rows, int offsets, int groups) -> Tensor",
)
for _schema in _SCHEMAS:
    library.define(_schema)


def _implement(name: str, function: Any, fake: Any, keys: tuple[str, ...]) -> None:
    for key in keys:
        library.impl(name, function, key)
    torch.library.register_fake(f"pumice::{name}", fake, lib=library)


# Tokens are on the host, wherever the sites are.


def _token_like(token: Tensor) -> Tensor:
    return token.new_empty((1,))


def _submanifold_map(sites: Tensor, window: list[int]) -> Tensor:
    return _C.map_token(_C.submanifold_map(_C.sites_of(sites), Window.of(window).c))


def _strided_map(
    sites: Tensor, indices: Tensor, window: list[int], cell: bool
) -> tuple[Tensor, Tensor, Tensor]:
    map = _C.strided_map(_C.sites_of(sites), Window.of(window).c, cell)
    out = map.out_sites
    return _C.map_token(map), _C.sites_token(out), out.coordinates().clone()


def _strided_map_fake(
    sites: Tensor, indices: Tensor, window: list[int], cell: bool
) -> tuple[Tensor, Tensor, Tensor]:
    rows = torch.library.get_ctx().new_dynamic_size()
    return _token_like(sites), _token_like(sites), indices.new_empty((rows, 1 + window[0]))


def _transposed_map(sites: Tensor, fine: Tensor, window: list[int]) -> Tensor:
    coarse = _C.sites_of(sites)
    return _C.map_token(_C.transposed_map(coarse, _C.sites_of(fine), Window.of(window).c))


def _inverse_map(sites: Tensor, fine: Tensor, window: list[int]) -> Tensor:
    coarse = _C.sites_of(sites)
    return _C.map_token(_C.inverse_map(coarse, Window.of(window).c, _C.sites_of(fine)))


_implement("submanifold_map", _submanifold_map, lambda s, w: _token_like(s), ("CPU",))
_implement("strided_map", _strided_map, _strided_map_fake, ("CPU", "CUDA"))
_implement("transposed_map", _transposed_map, lambda s, f, w: _token_like(s), ("CPU",))
_implement("inverse_map", _inverse_map, lambda s, f, w: _token_like(s), ("CPU",))


# Convolution.


def _convolution(
    features: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    map: Tensor,
    in_rows: int,
    out_rows: int,
    groups: int,
) -> Tensor:
    found = _C.map_of(map)
    deterministic, tf32 = modes.of(features)
    return _C.convolution(
        features.contiguous(),
        weight.contiguous(),
        found,
        modes.bias_for(bias, features),
        groups,
        deterministic,
        tf32,
        None,
        None,
        0,
    )


def _input_gradient(
    grad_output: Tensor, weight: Tensor, map: Tensor, in_rows: int, out_rows: int, groups: int
) -> Tensor:
    found = _C.map_of(map)
    return _C.convolution_input_gradient(
        grad_output.contiguous(), weight.contiguous(), found, groups, *modes.of(grad_output), None
    )


def _weight_gradient(
    features: Tensor,
    grad_output: Tensor,
    map: Tensor,
    in_rows: int,
    out_rows: int,
    offsets: int,
    groups: int,
) -> Tensor:
    found = _C.map_of(map)
    return _C.convolution_weight_gradient(
        features.contiguous(), grad_output.contiguous(), found, groups, *modes.of(features)
    )


_BOTH = ("CPU", "CUDA")
_implement(
    "convolution",
    _convolution,
    lambda x, w, bias, map, in_rows, out_rows, groups: x.new_empty((out_rows, w.shape[2])),
    _BOTH,
)
_implement(
    "convolution_input_gradient",
    _input_gradient,
    lambda g, w, map, in_rows, out_rows, groups: g.new_empty((in_rows, w.shape[1] * groups)),
    _BOTH,
)
_implement(
    "convolution_weight_gradient",
    _weight_gradient,
    lambda x, g, map, in_rows, out_rows, offsets, groups: x.new_empty(
        (offsets, x.shape[1] // groups, g.shape[1])
    ),
    _BOTH,
)
