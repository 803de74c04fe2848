"""The two kinds of tensors that users of a layer see: one that tells what is done to it, in the first pass,
and one that is not computed yet."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from ... import _C
from .links import NORMED, Again, Link, Norm
from .uses import NORM, OTHER, RELU, STORE, SUM, Use

_functions = torch.nn.functional
_untouched = torch._C.DisableTorchFunctionSubclass
_ordinary = (Tensor, torch.nn.Parameter)

# Operations by what they are here.
_KINDS: dict[Any, str] = {
    _functions.batch_norm: NORM,
    _functions.relu: RELU,
    _functions.relu_: RELU,
    torch.relu: RELU,
    torch.relu_: RELU,
    Tensor.relu: RELU,
    Tensor.relu_: RELU,
    torch.add: SUM,
    Tensor.add: SUM,
    Tensor.__add__: SUM,
    Tensor.__radd__: SUM,
    Tensor.add_: SUM,
    Tensor.__iadd__: SUM,
}
_IN_PLACE = {_functions.relu_, torch.relu_, Tensor.relu_, Tensor.add_, Tensor.__iadd__}

# What a result is asked without its numbers.
_LOOKS = {
    Tensor.dim, Tensor.size, Tensor.numel, Tensor.get_device, Tensor.is_floating_point, Tensor.__len__,
    Tensor.stride, Tensor.is_contiguous, torch.is_floating_point, torch.numel,
    *(getattr(Tensor, name).__get__ for name in (
        "shape", "dtype", "device", "ndim", "is_cuda", "is_cpu", "layout", "requires_grad", "is_sparse",
        "is_nested", "is_quantized", "is_meta", "itemsize",
    )),
}  # fmt: skip


class Observed(Tensor):
    """A result like any other, which notes what is done to it."""

    use: Use

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in _LOOKS:
            with _untouched():
                return function(*args, **kwargs)
        return _done(function, args, kwargs)

    def stands_for(self) -> Tensor:
        """The same as an ordinary tensor."""
        return plain(self)


class Deferred(Tensor):
    """What a link makes, or made at an earlier `stage`, which may not have been computed yet. Any operation
    computes it but those that the link is then asked for."""

    link: Link
    stage: int
    use: Use
    again: Again  # where its numbers are not there, and what they are computed of has to stay

    @staticmethod
    def __new__(cls, link: Link) -> Deferred:
        self: Deferred = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls, link.shape, dtype=link.dtype, device=link.device, requires_grad=link.requires_grad
        )
        self.link = link
        self.stage = link.stage
        self.use = link.use
        link.seen.append(weakref.ref(self))
        return self

    # By Python alone, in a tenth of the time.
    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """That of the result."""
        return self.link.device

    @property
    def is_cuda(self) -> bool:  # type: ignore[override]
        """Whether that is a GPU."""
        return self.link.is_cuda

    @property
    def shape(self) -> torch.Size:  # type: ignore[override]
        """[N, C]"""
        return self.link.shape

    @property
    def dtype(self) -> torch.dtype:  # type: ignore[override]
        """That of the result."""
        return self.link.dtype

    def dim(self) -> int:
        """2"""
        return 2

    def __len__(self) -> int:
        return self.link.shape[0]

    def get_device(self) -> int:
        """That of the GPU, -1 on the CPU."""
        return self.link.get_device()

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        ask = _ASKS.get(function)
        if ask is not None:
            made = ask(*args, **kwargs) if kwargs else ask(*args)
            if made is not None:
                return made
        elif function in _LOOKS:
            with _untouched():
                return function(*args, **(kwargs or {}))
        return _done(function, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """For operators that no function of Python led to, below autograd."""
        kwargs = kwargs or {}
        for tensor in _tensors_in((args, kwargs)):
            if type(tensor) is Deferred:
                if tensor.link.requires_grad:
                    _expect_no_gradient(tensor)
                with torch.overrides.enable_reentrant_dispatch():
                    tensor.link.result(tensor.stage)
        return _done(function, args, kwargs)

    def stands_for(self) -> Tensor:
        """The same as an ordinary tensor, computed if need be."""
        return plain(self)

    def __repr__(self, **kwargs: Any) -> str:
        return repr(plain(self))


def _done(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """What a function of ordinary tensors gives, noted with those it is given."""
    kind = _KINDS.get(function, OTHER)
    if kind is NORM and (len(args) < 3 or _norm_given(*args[1:], **kwargs) is None):
        kind = OTHER  # a norm that no chain has
    after = None
    for value in _tensors_in((args, kwargs)):
        if type(value) is Observed or type(value) is Deferred:
            then = value.use.note(kind)
            if after is None or value.use.kind is NORM:  # of a sum, what a norm makes is added to
                after = then
            if type(value) is Deferred and value.link.users and _changes_in_place(function, kwargs):
                value.link.before_a_change()
    result = function(*map(plain_in, args), **{name: plain_in(kwargs[name]) for name in kwargs})
    if after is None or after.known is not None or type(result) is not Tensor:
        return result
    return observed(result, after)


def _changes_in_place(function: Callable[..., Any], kwargs: dict[str, Any]) -> bool:
    """By its name, as PyTorch's are, relu_, __iadd__ and so on, or as the caller says."""
    name = getattr(function, "__name__", "")
    return kwargs.get("inplace") or name.startswith("__i") or name == "__setitem__" or (name[-1:] == "_" and name[-2:] != "__")


def observed(result: Tensor, use: Use) -> Tensor:
    """It, which notes in `use` what is done to it."""
    seen = result.as_subclass(Observed)
    seen.use = use
    return seen


def plain(tensor: Any) -> Any:
    """An ordinary tensor, computed if need be."""
    kind = type(tensor)
    if kind is Observed:
        with _untouched():
            return tensor.as_subclass(Tensor)
    if kind is not Deferred:
        return tensor
    link = tensor.link
    if not link.is_done and link.requires_grad and not torch.is_grad_enabled():
        _expect_no_gradient(tensor)  # an autograd function's own code reads it so too
    return link.result(tensor.stage)


def _expect_no_gradient(tensor: Deferred) -> None:
    """Autograd, where it was given this very tensor, does not know that anything led to it."""
    with _untouched():
        tensor.register_hook(_lost)


def _lost(gradient: Tensor) -> None:
    raise _C.UserError(
        "a layer's features went to an autograd function or an extension before anything else read them, which "
        "did not happen in earlier passes: the gradient ends there. Give it x.features.clone(), or call "
        "pumice.compat.defer_layers(False)"
    )


def plain_in(value: Any) -> Any:
    """The same with ordinary tensors."""
    if isinstance(value, Tensor):
        return plain(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(map(plain_in, value))
    if type(value) is dict:
        return {key: plain_in(part) for key, part in value.items()}
    return value


def _tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in _tensors_in(part)]


# Operations that links are asked for. Each returns None where the operation has to be done.


def _can_go_on(tensor: Any, kind: str) -> bool:
    """Whether the link of a tensor can be asked for more."""
    return type(tensor) is Deferred and tensor.use.known is kind and is_open(tensor)


def is_open(tensor: Deferred) -> bool:
    """Whether nothing was made yet of what a tensor stands for."""
    link = tensor.link
    return (
        not link.is_done
        and not link.users
        and tensor.stage == link.stage
        and torch.is_grad_enabled() is link.learns
    )


def _went_on(link: Link, use: Use | None, in_place: Deferred | None = None) -> Tensor:
    """What the caller of an operation is given of its link."""
    assert use is not None, "of an operation that is known"
    link.use = use
    if in_place is not None:  # who holds the tensor sees the change
        in_place.stage, in_place.use = link.stage, use
        if use.known is None or use.known is OTHER:
            link.result()
        return in_place
    if use.known is None:
        return observed(link.result(), use)
    return link.result() if use.known is OTHER else Deferred(link)


def _norm_given(
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Norm | None:
    """None where no chain has such a norm."""
    for tensor in (running_mean, running_var, weight, bias):
        if type(tensor) not in _ordinary:
            return None
    # PyTorch's norm has counted the batch.
    return running_mean, running_var, weight, bias, training, momentum, eps, None  # type: ignore[return-value]


def _batch_norm(input: Tensor, *args: Any, **kwargs: Any) -> Tensor | None:
    if len(args) < 2 or not _can_go_on(input, NORM):
        return None
    norm = _norm_given(*args, **kwargs)
    link = input.link
    if norm is None or (norm[4] and link.shape[0] < 2) or norm[2].shape != link.shape[1:]:
        return None
    link.normalize(norm)
    return _went_on(link, input.use.then)


def _relu(input: Tensor, inplace: bool = False) -> Tensor | None:
    if not _can_go_on(input, RELU):
        return None
    link = input.link
    link.rectify()
    return _went_on(link, input.use.then, input if inplace else None)


def _relu_in_place(input: Tensor) -> Tensor | None:
    return _relu(input, True)


def _add(input: Any, other: Any, *, alpha: float = 1, out: Any = None) -> Tensor | None:
    if alpha != 1 or out is not None:
        return None
    made = _sum(input, other)
    return _sum(other, input) if made is None else made


def _add_in_place(input: Any, other: Any, *, alpha: float = 1) -> Tensor | None:
    return None if alpha != 1 else _sum(input, other, input)


def _sum(main: Any, other: Any, in_place: Deferred | None = None) -> Tensor | None:
    """Of what a norm makes and `other`."""
    if not _can_go_on(main, SUM) or main.stage != NORMED:
        return None
    link = main.link
    residual = residual_of(link, other)
    if residual is None:
        return None
    if residual is not other:
        other.use.note(SUM)
    link.add(residual)
    return _went_on(link, main.use.then, in_place)


def residual_of(link: Link, other: Any) -> Union[Link, Tensor, None]:
    """What a link adds of `other`; None where it cannot."""
    residual = other
    if type(other) is Deferred:
        residual = other.link
        if residual.is_done:
            residual = residual.result(other.stage)
        elif residual is link or residual.mode != link.mode or other.stage != residual.stage:
            return None
    elif type(other) is Observed:
        residual = plain(other)
    elif type(other) is not Tensor:
        return None
    if residual.shape != link.shape or residual.dtype != link.dtype or residual.device != link.device:
        return None
    return residual


# Each takes the arguments of the operation.
_ASKS: dict[Any, Callable[..., Tensor | None]] = {
    _functions.batch_norm: _batch_norm,
    **{
        function: (_relu_in_place if function in _IN_PLACE else _relu) if kind is RELU
        else (_add_in_place if function in _IN_PLACE else _add)
        for function, kind in _KINDS.items()
        if kind is not NORM
    },
}  # fmt: skip


# How sparse tensors hold features.


def store(features: Any) -> tuple[Any, Use | None]:
    """What a sparse tensor holds of features that it is given, and where to note what becomes of them."""
    kind = type(features)
    if kind is Observed:
        return plain(features), features.use.note(STORE)
    if kind is Deferred:
        after = features.use.note(STORE)
        if after is not None and not features.link.is_done:
            features.use = after
            return features, None
        return features.link.result(features.stage), after
    return features, None


def take(features: Any, use: Use | None) -> Tensor:
    """The same for layers, which read them without a trace: an ordinary tensor."""
    if type(features) is Deferred:
        use = features.use
        features = features.link.result(features.stage)
    if use is not None and use.kind == "convolution":
        use.note(OTHER)
    return features


def read(features: Any, use: Use | None) -> Tensor:
    """What a user of a sparse tensor is given of the features that it holds."""
    if type(features) is Deferred:
        use = features.use
        if use.known is not None and use.known is not OTHER and not features.link.is_done:
            return features
        features = features.link.result(features.stage)
    return observed(features, use) if use is not None and use.known is None else features
