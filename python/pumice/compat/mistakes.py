"""What the interfaces say of usual mistakes: where in the network a layer fails, and what to call where PyTorch
meets a sparse tensor of theirs."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from .. import _C
from .._checks import full_kind_of
from .._where import explained, place_of, torch_module

def has_fractions(coords: Tensor) -> bool:
    """Whether coordinates have other numbers than whole ones; waits for a GPU where they are floating-point."""
    if not coords.is_floating_point() or torch.compiler.is_compiling():
        return False
    return not bool((coords == coords.floor()).all())


def other_way_round(features: Any, coords: Any) -> bool:
    """Whether these seem to be coordinates and features, the arguments in the wrong order: integers, of as many
    columns as coordinates have, where features belong, and floats in their place."""
    return (
        isinstance(features, Tensor) and isinstance(coords, Tensor) and coords.is_floating_point()
        and features.dim() == 2 and 2 <= features.shape[1] <= 5
        and not (features.is_floating_point() or features.is_complex())
    )  # fmt: skip


Forward = TypeVar("Forward", bound=Callable[..., Any])


class PeerTypeError(_C.UserError, TypeError):
    """Something that PyTorch, or a layer, does not take: code written for the library stood in for catches a
    TypeError."""


def explaining(kind: type, make: str) -> Callable[[Forward], Forward]:
    """For `forward` of layers that take a `kind`, a sparse tensor that `make` makes: errors name the layer's path."""

    def decorate(forward: Forward) -> Forward:
        @functools.wraps(forward)
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return forward(self, *args, **kwargs)
            except (AttributeError, TypeError, ValueError, RuntimeError, AssertionError) as error:
                given = args[0] if args else next(iter(kwargs.values()), None)
                if not isinstance(given, kind) and not isinstance(error, _C.UserError):
                    raise PeerTypeError(
                        f"{place_of(self, sys._getframe(1))} takes a SparseTensor, and got "
                        f"{full_kind_of(given)}: make one with {make}"
                    ) from None
                better = explained(error)
                if better is error:
                    raise
                raise better from None

        return run  # type: ignore[return-value]

    return decorate


class NoTensor:
    """Base of the sparse tensors: PyTorch's functions and modules, which take tensors, get a sentence."""

    # What to do instead of giving it to a module of torch.nn, and to a function.
    _modules = ""
    _functions = ""

    # Names of classes of torch.nn, and the interface's own layers for them, which the modules of layers enter here.
    _layers: dict[str, str]

    @classmethod
    def _has_layers(cls, prefix: str, names: Iterable[str], start: str = "") -> None:
        """`names` of layers, without `start` those of torch.nn, are found under `prefix`."""
        for name in names:
            plain = name.removeprefix(start)
            cls._layers.update({plain: prefix + name, f"{plain}1d": prefix + name})

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        module = torch_module(sys._getframe(1))
        if module is not None:
            raise PeerTypeError(cls._given_to(module))
        name = getattr(function, "__name__", str(function)).strip("_")
        raise PeerTypeError(f"torch's {name} takes tensors, and got a {cls.__name__}: {cls._functions}")

    @classmethod
    def _given_to(cls, module: Any) -> str:
        own = cls._layers.get(type(module).__name__)
        return (
            f"{place_of(module, sys._getframe(1))} takes a tensor, and got a {cls.__name__}: "
            + (cls._modules if own is None else f"{own} takes it")
        )


class _Asked:
    """A method of tensors that modules of torch.nn ask for first."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, x: Any, kind: Any = None) -> Any:
        name = type(x).__name__ if x is not None else kind.__name__
        module = None if x is None else torch_module(sys._getframe(1))
        if module is not None:
            raise AttributeError(x._given_to(module))
        raise AttributeError(f"{name!r} object has no attribute {self.name!r}")


for _name in ("dim", "flatten"):
    setattr(NoTensor, _name, _Asked(_name))
