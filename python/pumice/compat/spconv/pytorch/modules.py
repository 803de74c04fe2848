"""The containers of spconv, PyTorch's modules that take its tensors, and helpers around modules."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Union

import torch

from .... import _C
from ...._where import explained, place_of
from ....nn.fused import is_watched
from .convolution import SparseConvolution
from .core import SparseConvTensor
from .windowed import SparseModule


class SparseSequential(SparseModule):
    """Modules one after the other: given as arguments, in an OrderedDict, or by keyword. Those of
    this package see the sparse tensor; all others, a user's own too, its features (and are passed
    over where there are no rows)."""

    def __init__(self, *args: Any, **kwargs: torch.nn.Module) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            items = list(args[0].items())
        else:
            items = [(str(at), module) for at, module in enumerate(args)]
        for name, module in [*items, *kwargs.items()]:
            self.add(module, name)

    def add(self, module: torch.nn.Module, name: str | None = None) -> None:
        name = str(len(self._modules)) if name is None else name
        if name in self._modules:
            raise _C.UserError(f"SparseSequential has a module {name!r} already: name another")
        self.add_module(name, module)

    def __getitem__(self, index: int) -> torch.nn.Module:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} is out of range")
        return list(self._modules.values())[index]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[torch.nn.Module]:
        return iter(self._modules.values())

    def forward(self, input: Any) -> Any:
        try:
            return self._in_order(input)
        except (ValueError, RuntimeError, IndexError) as error:  # of norms and linear layers: those of spconv say where they are
            better = error if isinstance(error, _C.UserError) else explained(error)
            if better is error:
                raise
            raise better from None

    def _in_order(self, input: Any) -> Any:
        modules = list(self._modules.values())
        passed = 0
        for index, module in enumerate(modules):
            if index < passed:
                continue
            if type(input) is SparseConvTensor and is_sparse_conv(module):
                together = _run_together(modules, index, input)
                if together is not None:
                    input, passed = together
                    continue
            if is_spconv_module(module) or not isinstance(input, SparseConvTensor):
                input = module(input)
            elif input.indices.shape[0] != 0:
                input = input.replace_feature(module(input.features))
        return input


def _run_together(
    modules: list[torch.nn.Module], index: int, x: SparseConvTensor
) -> tuple[SparseConvTensor, int] | None:
    """The convolution at `index` with the norm and the ReLU behind it, and where to go on; None where they are
    to be called one by one."""
    if index + 1 == len(modules) or type(modules[index + 1]) not in _NORMS:
        return None
    behind = modules[index + 2] if index + 2 < len(modules) else None
    relu = behind is not None and type(behind) in _RELUS and not is_watched(behind)
    convolution: Any = modules[index]
    output = convolution.run_with(x, modules[index + 1], relu)
    return None if output is None else (output, index + (3 if relu else 2))


def _on_features(name: str, base: type[torch.nn.Module]) -> type[torch.nn.Module]:
    def forward(self: torch.nn.Module, input: Any) -> Any:
        if isinstance(input, SparseConvTensor):
            return input.replace_feature(base.forward(self, input.features))
        return base.forward(self, input)

    return type(name, (base,), {
        "forward": forward, "__module__": __name__, "__qualname__": name,
        "__doc__": f"torch.nn.{base.__name__} of a tensor, or of the features of a sparse one.",
    })  # fmt: skip


SparseBatchNorm = _on_features("SparseBatchNorm", torch.nn.BatchNorm1d)
SparseSyncBatchNorm = _on_features("SparseSyncBatchNorm", torch.nn.SyncBatchNorm)
SparseReLU = _on_features("SparseReLU", torch.nn.ReLU)
SparseIdentity = _on_features("SparseIdentity", torch.nn.Identity)
_NORMS = (torch.nn.BatchNorm1d, SparseBatchNorm)
_RELUS = (torch.nn.ReLU, SparseReLU)


def is_spconv_module(module: torch.nn.Module) -> bool:
    """Whether SparseSequential gives it the sparse tensor."""
    return isinstance(module, (SparseModule, SparseBatchNorm, SparseReLU))


def is_sparse_conv(module: torch.nn.Module) -> bool:
    return isinstance(module, SparseConvolution)


class PrintTensorMeta(torch.nn.Module):
    """Prints the smallest, the largest and the mean feature, and hands on what it got."""

    def forward(self, x: Union[SparseConvTensor, torch.Tensor]) -> Any:
        values = x.features if isinstance(x, SparseConvTensor) else x
        print(values.min(), values.max(), values.mean())
        return x


class PrintCurrentTime(torch.nn.Module):
    """Prints the seconds since it was made or last reset, and hands on what it got."""

    def __init__(self) -> None:
        super().__init__()
        self.first_time = time.time()

    def forward(self, x: Any, msg: str = "", reset: bool = False) -> Any:
        if reset:
            self.first_time = time.time()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        print(msg, time.time() - self.first_time)
        return x


def assign_name_for_sparse_modules(module: torch.nn.Module) -> None:
    """Lets errors name layers as the network does."""
    for name, child in module.named_modules():
        if isinstance(child, SparseModule):
            child._sparse_unique_name = name
