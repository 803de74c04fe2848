"""Restores PyTorch's switches to what they were when a layer was called, while that layer is computed later."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from ... import _C
from ...ops import modes
from ..chain import hooks_on_saved
from .links import Link, Mode, now


def as_called(mode: Mode, link: Link) -> contextlib.AbstractContextManager[None]:
    """A context in which PyTorch's switches are those of `mode`, in which `link` was called."""
    hooked = hooks_on_saved is not None and hooks_on_saved(True) is not None
    if now(link) == mode and not hooked:
        return contextlib.nullcontext()
    return _switched(mode, link, hooked)


@contextlib.contextmanager
def _switched(mode: Mode, link: Link, hooked: bool) -> Iterator[None]:
    learns, inference, autocast, stream = mode
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.inference_mode(inference))
        stack.enter_context(torch.set_grad_enabled(learns))
        if modes.autocast_dtype(link) != autocast:  # type: ignore[arg-type]
            kind = "cuda" if link.is_cuda else "cpu"
            stack.enter_context(torch.autocast(kind, autocast, enabled=autocast is not None))
        if hooked:  # set after the layers were called
            stack.enter_context(_without_hooks())
        if modes.stream_of(link) != stream:  # type: ignore[arg-type]
            stack.enter_context(_on_stream(stream, link))
        yield


@contextlib.contextmanager
def _without_hooks() -> Iterator[None]:
    hooks = hooks_on_saved(True)
    torch._C._autograd._pop_saved_tensors_default_hooks()
    try:
        yield
    finally:
        torch._C._autograd._push_saved_tensors_default_hooks(*hooks)


@contextlib.contextmanager
def _on_stream(stream: int, link: Link) -> Iterator[None]:
    """The stream on which the layers were called. The stream that asks for the result waits for it afterwards."""
    if torch.cuda.is_current_stream_capturing():
        raise _C.UserError(
            "a CUDA graph is being recorded on another stream than layers were called on whose output it uses: "
            "read x.features before"
        )
    asks = torch.cuda.current_stream(link.device)
    default = torch.cuda.default_stream(link.device)
    calls = default if stream == default.cuda_stream else torch.cuda.ExternalStream(stream, link.device)
    with torch.cuda.stream(calls):
        yield
    asks.wait_stream(calls)
    for value in (link.value, *link.early.values()):
        if value is not None:
            value.record_stream(asks)
