"""MinkowskiEngine's enumerations."""

from __future__ import annotations

from enum import Enum
from typing import Any, TypeVar

from ..._checks import shown
from ..foreign import PeerAssertionError

_Kind = TypeVar("_Kind", bound="_Compiled")


class _Compiled(Enum):
    """A member turns into its number, as MinkowskiEngine's compiled enumerations do."""

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


def _with_entries(kind: type[_Kind]) -> type[_Kind]:
    """{name: (member, its text)} under the name that pybind11 has it under, which networks list regions from."""
    setattr(kind, "__entries", {name: (member, None) for name, member in kind.__members__.items()})
    return kind


class SparseTensorOperationMode(Enum):
    """Whether every tensor of new coordinates gets a coordinate manager of its own."""

    SEPARATE_COORDINATE_MANAGER = 0
    SHARE_COORDINATE_MANAGER = 1


class SparseTensorQuantizationMode(Enum):
    """What becomes of rows that share a cell."""

    RANDOM_SUBSAMPLE = 0  # the first one stays
    UNWEIGHTED_AVERAGE = 1
    UNWEIGHTED_SUM = 2
    NO_QUANTIZATION = 3
    MAX_POOL = 4
    SPLAT_LINEAR_INTERPOLATION = 5


@_with_entries
class RegionType(_Compiled):
    HYPER_CUBE = 0
    HYPER_CROSS = 1
    CUSTOM = 2


@_with_entries
class PoolingMode(_Compiled):
    LOCAL_SUM_POOLING = 0
    LOCAL_AVG_POOLING = 1
    LOCAL_MAX_POOLING = 2
    GLOBAL_SUM_POOLING_DEFAULT = 3
    GLOBAL_AVG_POOLING_DEFAULT = 4
    GLOBAL_MAX_POOLING_DEFAULT = 5
    GLOBAL_SUM_POOLING_KERNEL = 6
    GLOBAL_AVG_POOLING_KERNEL = 7
    GLOBAL_MAX_POOLING_KERNEL = 8
    GLOBAL_SUM_POOLING_PYTORCH_INDEX = 9
    GLOBAL_AVG_POOLING_PYTORCH_INDEX = 10
    GLOBAL_MAX_POOLING_PYTORCH_INDEX = 11


@_with_entries
class BroadcastMode(_Compiled):
    ELEMENTWISE_ADDITON = 0
    ELEMENTWISE_MULTIPLICATION = 1


@_with_entries
class ConvolutionMode(_Compiled):
    """Kept by layers and read by nobody: Pumice chooses by itself."""

    DEFAULT = 0
    DIRECT_GEMM = 1
    COPY_GEMM = 2


@_with_entries
class MinkowskiAlgorithm(_Compiled):
    """Read by nobody: Pumice chooses by itself."""

    DEFAULT = 0
    MEMORY_EFFICIENT = 1
    SPEED_OPTIMIZED = 2


@_with_entries
class CoordinateMapType(_Compiled):
    CPU = 0
    CUDA = 1


@_with_entries
class GPUMemoryAllocatorType(_Compiled):
    """Read by nobody: memory is PyTorch's."""

    PYTORCH = 0
    CUDA = 1


def check_member(name: str, value: Any, kind: type[Enum]) -> None:
    """Raises PeerAssertionError, naming the argument, unless `value` is one of `kind`: no text, and no number."""
    if not isinstance(value, kind):
        *names, last = kind.__members__
        members = f"{', '.join(names)} or {last}" if len(names) < 6 else f"{names[0]} … {last}"
        raise PeerAssertionError(f"{name} {shown(value)}: give ME.{kind.__name__}.{members}")
