"""The configuration of layers. Of it `kmap_mode` and `downsample_mode` decide which sites a strided
convolution makes; the rest are settings of TorchSparse's kernels, of which plans.py makes plans where there is a
counterpart."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from ...... import _C
from ......_checks import shown, warn_once, whole_number
from .....mistakes import PeerTypeError
from .conv_mode import (
    ConvMode,
    checked_downsample_mode,
    checked_kmap_mode,
    checked_mode,
    get_downsample_mode,
    get_kmap_mode,
)
from .utils.collections import AttributeDict


class Dataflow(Enum):
    ImplicitGEMM = 0
    GatherScatter = 1
    FetchOnDemand = 2
    CodedCSR = 3


_default = AttributeDict({
    "dataflow": Dataflow.ImplicitGEMM, "ifsort": False, "kmap_mode": "hashmap_on_the_fly",
    "downsample_mode": "spconv", "split_mask_num": 1, "split_mask_num_bwd": 3, "epsilon": 0.0,
    "mm_thresh": 0, "FOD_fusion": True,
})  # fmt: skip
_OF_TORCHSPARSE = dict(_default)
_KERNELS = tuple(name for name in _default if name not in ("kmap_mode", "downsample_mode"))
_global: AttributeDict | None = None
_global_names: frozenset[str] = frozenset()  # that were given, before it was filled up


def get_default_conv_config(
    conv_mode: ConvMode = ConvMode.mode0, training: bool = False
) -> AttributeDict:
    """The one that layers have without another: who writes into it changes them all."""
    conv_mode = checked_mode(conv_mode)
    if conv_mode is not ConvMode.mode0:
        _default.ifsort = True
    if conv_mode is ConvMode.mode2:
        _default.split_mask_num = 3
    return _default


def get_global_conv_config() -> AttributeDict | None:
    return _global


def set_global_conv_config(conv_config: Any) -> None:
    """For all layers without one of their own. It is filled up by the default."""
    global _global, _global_names
    check("conv_config", conv_config)
    _global_names = frozenset(conv_config)
    keys_check(conv_config)
    _global = conv_config if isinstance(conv_config, AttributeDict) else AttributeDict(conv_config)


def clear_global_conv_config() -> None:
    global _global, _global_names
    _global, _global_names = None, frozenset()


def keys_check(conv_config: Any) -> None:
    """Fills `conv_config` up by the default."""
    check("conv_config", conv_config)
    for name, value in _default.items():
        conv_config.setdefault(name, value)


def check(name: str, config: Any) -> None:
    """Raises UserError where `config`, the argument `name`, is no configuration, or holds a value that there is not.
    Warns once of a key that nothing reads: TorchSparse lets it be."""
    if not isinstance(config, Mapping):
        raise PeerTypeError(f"{name} {shown(config)}: give a dictionary, as {{'dataflow': Dataflow.GatherScatter}}")
    for key in config:
        if key not in _OF_TORCHSPARSE:
            meant = difflib.get_close_matches(str(key), _OF_TORCHSPARSE, 1)
            warn_once(
                f"torchsparse config {key}",
                f"{name}[{key!r}] is read by nothing: "
                + (f"is {meant[0]!r} meant?" if meant else f"there are {', '.join(_OF_TORCHSPARSE)}"),
            )
    for key, checked in _CHECKED.items():
        if key in config:
            checked(config[key])


def checked_dataflow(dataflow: Any) -> Dataflow:
    """The Dataflow that it is, or is the number of."""
    try:
        if not isinstance(dataflow, bool):
            return Dataflow(getattr(dataflow, "value", dataflow))
    except ValueError:
        pass
    *names, last = (kind.name for kind in Dataflow)
    raise _C.UserError(f"dataflow {shown(dataflow)}: give Dataflow.{', '.join(names)} or {last}")


_CHECKED: dict[str, Callable[[Any], Any]] = {
    "dataflow": checked_dataflow,
    "kmap_mode": checked_kmap_mode,
    "downsample_mode": checked_downsample_mode,
    "split_mask_num": lambda parts: whole_number("split_mask_num", parts, 1),
    "split_mask_num_bwd": lambda parts: whole_number("split_mask_num_bwd", parts, 1),
}


def said(config: Any) -> dict[str, Any] | None:
    """What the configuration of a layer, or else the global one, says of kernels; None where there is neither.

    A complete configuration, as a copy of the default, says that in which it differs from TorchSparse's default: the
    others were not chosen by anybody, and kernels that are fast there need not be so here.
    """
    names: Any = config
    if not config:
        if _global is None:
            return None
        config, names = _global, _global_names
    is_complete = all(name in names for name in _OF_TORCHSPARSE)
    return {
        name: config[name]
        for name in _KERNELS
        if name in config
        and (config[name] != _OF_TORCHSPARSE[name] or (name in names and not is_complete))
    }


def floors(config: Any, size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether a strided convolution of that size makes a site of each occupied coarse cell around its
    centre, without a border, and not one of each cell that an offset reaches."""
    config = config or _global or _default
    if checked_kmap_mode(config.get("kmap_mode", "hashmap_on_the_fly")) != "hashmap":
        return False
    if checked_downsample_mode(config.get("downsample_mode", "spconv")) == "minkowski":
        return True
    return all(s in (1, k) for k, s in zip(size, stride))


__all__ = [
    "ConvMode",
    "Dataflow",
    "clear_global_conv_config",
    "get_default_conv_config",
    "get_downsample_mode",
    "get_global_conv_config",
    "get_kmap_mode",
    "keys_check",
    "set_global_conv_config",
]
