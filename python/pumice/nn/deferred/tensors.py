"""Defines the two classes of tensors that users of a layer see: `Observed` records what is done to it, in the
first passes, and `Deferred` has not been computed yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Union

import torch
from torch import Tensor

from ... import _C
from ...ops import counted_functions, modes
from .links import Link, Ticket
from .operations import KINDS, LOOKS, changes_in_place, norm_given
from .uses import NORM, OTHER, RELU, Use

_untouched = torch._C.DisableTorchFunctionSubclass

# By function of PyTorch, what adds it to a link, with the arguments of that function; asks.py fills it.
ASKS: dict[Any, Callable[..., Tensor | None]] = {}


# By kind of use, what finds the `Use` of the result of a function with these arguments, where its arguments' own do not
# know it; None for arguments that no chain takes. consumers.py fills it.
RESULTS: dict[str, Callable[[Any, Any], Use | None]] = {}


class Observed(Tensor):
    """A computed result that records what is done to it."""

    use: Use

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if function in LOOKS:
            with _untouched():
                return function(*args, **kwargs)
        return _done(function, args, kwargs)

    def stands_for(self) -> Tensor:
        """This tensor as an ordinary one."""
        return plain(self)


class Deferred(Tensor):
    """Stands for the result of a link, or of an earlier `stage` of it, which may not have been computed yet. An
    operation on it is added to the link if that is possible; any other one computes it."""

    __slots__ = ("ticket",)

    # The extension gives the class these properties, and its __torch_function__.
    ticket: Ticket
    link: Link
    stage: int
    use: Use
    shape: torch.Size
    dtype: torch.dtype
    device: torch.device
    is_cuda: bool

    def dim(self) -> int:
        """2"""
        return 2

    def __len__(self) -> int:
        return self.link.shape[0]

    def get_device(self) -> int:
        """The number of the GPU, -1 on the CPU."""
        return self.link.get_device()

    @classmethod
    def __torch_dispatch__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Runs operators that are called from C++, below autograd."""
        kwargs = kwargs or {}
        for tensor in _tensors_in((args, kwargs)):
            if type(tensor) is Deferred:
                if tensor.link.requires_grad:
                    _expect_no_gradient(tensor)
                with torch.overrides.enable_reentrant_dispatch():
                    tensor.link.result(tensor.stage)
        return _done(function, args, kwargs)

    def requires_grad_of_its_own(self) -> bool:
        """Autograd's own flag of this object."""
        return Tensor.requires_grad.__get__(self)  # type: ignore[attr-defined]

    def stands_for(self) -> Tensor:
        """This tensor as an ordinary one, computed if need be."""
        return plain(self)

    def __repr__(self, **kwargs: Any) -> str:
        return repr(plain(self))


_C.equip_deferred(Deferred)


def asked(function: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """What a function of PyTorch returns that was called with a deferred tensor, and that the extension did not add
    to a link."""
    ask = ASKS.get(function)
    if ask is not None:
        made = ask(*args, **kwargs) if kwargs else ask(*args)
        if made is not None:
            return made
    elif function in LOOKS:
        with _untouched():
            return function(*args, **(kwargs or {}))
    return _done(function, args, kwargs or {})


_OWN = {Tensor, torch.nn.Parameter, Observed, Deferred}
_COPIES = {Tensor.__reduce_ex__, Tensor.__deepcopy__}  # they keep the class, which must not get into files


def _done(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """The result of a function on ordinary tensors, recorded in the uses of its arguments."""
    kind = KINDS.get(function, OTHER)
    if kind is NORM and (len(args) < 3 or norm_given(*args[1:], **kwargs) is None):
        kind = OTHER  # no chain has such a norm
    find = RESULTS.get(kind)
    after = None if find is None else find(args, kwargs)
    if find is not None and after is None:
        kind = OTHER
    is_of_norm = find is not None
    tensors = _tensors_in((args, kwargs))
    for value in tensors:
        if type(value) is Observed or type(value) is Deferred:
            if type(value) is Observed and (kind is NORM or kind is RELU):
                _C.look_for_module(value.use)  # a hook that it gets before it meets a deferred tensor watches one
            then = value.use.note(OTHER if leaves_gradients(value) else kind)
            if not is_of_norm:  # a sum belongs to the norm before it
                is_of_norm = value.use.kind is NORM
                after = then if is_of_norm or after is None else after
            if (joined := value.use.joined) is not None and joined.known is not OTHER and changes_in_place(function, kwargs):
                joined.note(OTHER)  # what becomes of its joins is another thing when they wait
            if type(value) is Deferred and value.link.takers and changes_in_place(function, kwargs):
                value.link.before_a_change()
    result = _called(function, args, kwargs, {type(value) for value in tensors})
    if after is None:
        return result
    if type(result) is Observed:  # changed in place
        result.use = after
        return result
    if after.known is not None or type(result) is not Tensor or any(result is value for value in tensors):
        return result  # the last case: a tensor of the user's, changed in place
    return observed(result, after)


def _called(function: Callable[..., Any], args: Any, kwargs: dict[str, Any], kinds: set[type]) -> Any:
    """Calls a function with the observed tensors themselves, since hooks, retained gradients and changes in place
    belong to them; or with ordinary ones, if another class of tensors takes part or they are written to a file."""
    if not kinds <= _OWN or function in _COPIES:
        return function(*map(plain_in, args), **{name: plain_in(kwargs[name]) for name in kwargs})
    if counted_functions.has_twin(function):
        return counted_functions.called(function, [plain_in(value) for value in args], plain_in(kwargs))
    if Deferred in kinds:
        args, kwargs = [_there(value) for value in args], {name: _there(kwargs[name]) for name in kwargs}
    with _untouched():
        return function(*args, **kwargs)


def _there(value: Any) -> Any:
    """`value` with deferred tensors replaced by computed ones."""
    return mapped(lambda tensor: plain(tensor) if type(tensor) is Deferred else tensor, value)


def observed(result: Tensor, use: Use) -> Tensor:
    """`result`, which from now on records in `use` what is done to it. It stays the same object, since a view would not
    have its hooks."""
    result.__class__ = Observed
    result.use = use  # type: ignore[attr-defined]
    return result


def plain(tensor: Any) -> Any:
    """`tensor` as an ordinary one, computed if need be."""
    kind = type(tensor)
    if kind is Observed:
        # Recorded even under no_grad, so that code which uses the tensor later can have its gradient.
        with _untouched(), torch.set_grad_enabled(torch.is_grad_enabled() or tensor.requires_grad):
            return tensor.as_subclass(Tensor)
    if kind is not Deferred:
        return tensor
    link = tensor.link
    if has_history(tensor):
        return _apply(tensor, link.result(tensor.stage))
    if not link.is_done and link.requires_grad and not torch.is_grad_enabled():
        _expect_no_gradient(tensor)  # the code of an autograd function runs under no_grad too
    return plain(link.result(tensor.stage))  # the result may be observed


def leaves_gradients(tensor: Union[Observed, Deferred]) -> bool:
    """Whether code without gradients uses a tensor that has some, as an autograd function does, and the code that
    torch.utils.checkpoint runs: the gradients that it returns go to the tensor that it was given."""
    if torch.is_grad_enabled():
        return False
    with _untouched():
        return tensor.link.requires_grad if type(tensor) is Deferred else tensor.requires_grad


def has_history(tensor: Deferred) -> bool:
    """Whether autograd made it the output of a function whose code runs under no_grad, as checkpointing does."""
    with _untouched():
        return tensor.requires_grad_of_its_own() and not tensor.link.requires_grad


class _Behind(torch.autograd.Function):
    """The numbers of a tensor; the gradient goes to the tensor itself."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, numbers: Tensor) -> Tensor:
        return numbers.detach()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


_apply = modes.function(_Behind)


def _expect_no_gradient(tensor: Deferred) -> None:
    """Raises an error if a gradient reaches `tensor` itself: autograd does not know what it was computed from."""
    with _untouched():
        tensor.register_hook(_lost)


def _lost(gradient: Tensor) -> None:
    raise _C.UserError(
        "a layer's features went to an autograd function, a module's backward hook or an extension before anything "
        "else read them, and the gradient ends there: give it x.features.clone(), or call "
        "pumice.compat.defer_layers(False)"
    )


def plain_in(value: Any) -> Any:
    """`value` with ordinary tensors."""
    return mapped(plain, value)


def mapped(change: Callable[[Any], Any], value: Any) -> Any:
    """`value`, in which `change` was applied to every tensor."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(mapped(change, part) for part in value)
    if type(value) is dict:
        return {key: mapped(change, part) for key, part in value.items()}
    return value


def _tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [tensor for part in value for tensor in _tensors_in(part)]
