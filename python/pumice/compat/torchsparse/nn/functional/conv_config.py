"""Settings of TorchSparse's kernels, kept for code that reads and writes them. They change nothing."""

from __future__ import annotations

from enum import Enum
from typing import Any


class Dataflow(Enum):
    ImplicitGEMM = 0
    GatherScatter = 1
    FetchOnDemand = 2
    CodedCSR = 3


class ConvMode(Enum):
    mode0 = 0
    mode1 = 1
    mode2 = 2


class ConvConfig(dict):
    """A dictionary whose keys are attributes too."""

    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


_mode = ConvMode.mode0
_global: ConvConfig | None = None


def get_default_conv_config(conv_mode: Any = None, training: bool = False) -> ConvConfig:
    return ConvConfig(
        dataflow=Dataflow.ImplicitGEMM, ifsort=False, kmap_mode="hashmap_on_the_fly",
        downsample_mode="spconv", split_mask_num=1, split_mask_num_bwd=3, epsilon=0.0, mm_thresh=0,
        FOD_fusion=True,
    )


def get_global_conv_config() -> ConvConfig | None:
    return _global


def set_global_conv_config(conv_config: Any) -> None:
    global _global
    _global = ConvConfig(conv_config)


def clear_global_conv_config() -> None:
    global _global
    _global = None


def get_conv_mode() -> ConvMode:
    return _mode


def set_conv_mode(conv_mode: Any) -> None:
    global _mode
    _mode = conv_mode if isinstance(conv_mode, ConvMode) else ConvMode(conv_mode)


def set_kmap_mode(kmap_mode: str) -> None:
    """Has no effect in TorchSparse either."""


def set_downsample_mode(downsample_mode: str) -> None:
    """Has no effect in TorchSparse either."""
