"""Teaches torch.nn.init the fan-in of weights of pumice.nn, whose axes are [K, in / groups, out].

torch.nn.init.kaiming_uniform_ and similar functions take [out, in, kernel…] and would compute 32 where the fan-in is
108 (a 3x3x3 kernel from 4 to 8 channels), without an error. They all ask one function of PyTorch, which is
replaced here by one that knows the weights of layers of pumice.nn and leaves all other tensors to PyTorch. A
subclass of Parameter could do the same, but every operation on it would go through Python.
"""

from __future__ import annotations

import functools
import threading
import weakref

import torch
from torch import Tensor

_layers: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
_lock = threading.Lock()


def know_weight_of(layer: torch.nn.Module) -> None:
    """Registers a convolution layer, whose parameters of three axes are weights."""
    with _lock:
        _layers.add(layer)


def fans_of_layout(weight: Tensor) -> tuple[int, int]:
    """(fan-in, fan-out) of [K, in / groups, out]."""
    offsets, inputs, outputs = weight.shape
    return offsets * inputs, offsets * outputs


def _is_weight(tensor: Tensor) -> bool:
    """Whether a layer has it as a parameter, or it is `.data` of one."""
    if tensor.dim() != 3 or tensor.numel() == 0:
        return False
    with _lock:
        layers = list(_layers)
    for layer in layers:
        for parameter in layer.parameters():  # of a parametrised layer they lie one module below
            if parameter is tensor:
                return True
            if parameter.shape == tensor.shape and parameter.device == tensor.device:
                if parameter.data_ptr() == tensor.data_ptr() != 0:
                    return True
    return False


def _replace() -> None:
    pytorchs = getattr(torch.nn.init, "_calculate_fan_in_and_fan_out", None)
    if pytorchs is None:
        return

    @functools.wraps(pytorchs)
    def fans(tensor: Tensor) -> tuple[int, int]:
        return fans_of_layout(tensor) if _is_weight(tensor) else pytorchs(tensor)

    torch.nn.init._calculate_fan_in_and_fan_out = fans


_replace()
