"""Hands the extension what its recorder asks of PyTorch and of this package (python/src/recorder/parts.hpp)."""

from __future__ import annotations

import sys

import torch
from torch.autograd import forward_ad

from ... import _C
from ...ops import modes
from ..chain import hooks_on_saved, made_for
from ..kept import readers
from . import asks, consumers, region, running, switch, tensors  # noqa: F401  (consumers adds what it asks)
from .held import read
from .operations import IN_PLACE, KINDS

_every_module = torch.nn.modules.module
_NORM = torch.nn.BatchNorm1d.forward
_RELU = torch.nn.ReLU.forward
_MODULES = {_NORM.__code__: torch.nn.BatchNorm1d, _RELU.__code__: torch.nn.ReLU}
_MOST_FRAMES = 9  # from here up to the module's forward


def shorten() -> None:
    """Lets later calls of the module that has just called a norm or a ReLU go straight to the extension; none where
    that was no module."""
    frame = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        kind = _MODULES.get(frame.f_code)
        if kind is not None:
            module = frame.f_locals["self"]
            if type(module) is kind:
                _C.shorten_calls(module)
            return
        if frame.f_back is None:
            return
        frame = frame.f_back


def _connect() -> None:
    cuda = torch.version.cuda is not None and torch.cuda.is_available()
    _C.connect_recorder({
        "Tensor": torch.Tensor,
        "Parameter": torch.nn.Parameter,
        "Deferred": tensors.Deferred,
        "Observed": tensors.Observed,
        "BatchNorm1d": torch.nn.BatchNorm1d,
        "ReLU": torch.nn.ReLU,
        "Size": torch.Size,
        "norm_forward": _NORM,
        "relu_forward": _RELU,
        "functions": vars(torch.nn.functional),
        "norm_function": torch.nn.functional.batch_norm,
        "relu_function": torch.nn.functional.relu,
        "call_impl": torch.nn.Module._call_impl,
        "float64": torch.float64,
        "make_wrapper": torch.Tensor._make_wrapper_subclass,
        "learns": torch.is_grad_enabled,
        "infers": torch.is_inference_mode_enabled,
        "any_autocast": torch._C._is_any_autocast_enabled,
        "autocasts": torch.is_autocast_enabled,
        "autocast_dtype": torch.get_autocast_dtype,
        "transforms": torch._C._are_functorch_transforms_active,
        "dispatch_modes": torch._C._len_torch_dispatch_stack,
        "function_modes": torch._C._len_torch_function_stack,
        "tracing": torch._C._get_tracing_state,
        "hooks_on_saved": hooks_on_saved,
        "is_compiling": torch.compiler.is_compiling,
        "raw_stream": torch._C._cuda_getCurrentRawStream if cuda else None,
        "compiler": vars(torch.compiler),
        "forward_ad": vars(forward_ad),
        "global_hooks": (
            _every_module._global_forward_hooks,
            _every_module._global_forward_pre_hooks,
            _every_module._global_backward_hooks,
            _every_module._global_backward_pre_hooks,
        ),
        "get_frame": sys._getframe,
        "kinds": KINDS,
        "in_place": IN_PLACE,
        "asked": tensors.asked,
        "running": vars(running),
        "defers": vars(switch),
        "went_on": asks.went_on,
        "goes_back": asks.goes_back,
        "plain": tensors.plain,
        "read": read,
        "watch": region.watch_the_outermost,
        "depth_of": region.depth_of,
        "settle": region.settle,
        "shorten": shorten,
        "numerics": modes.of,
        "made_for": made_for,
        "readers": readers,
    })  # fmt: skip


_connect()
