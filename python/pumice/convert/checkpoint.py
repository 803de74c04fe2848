"""Reads and writes checkpoint files. Reading runs no code that a file contains."""

from __future__ import annotations

import io
import pathlib
import pickle
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _C
from .._checks import check_file
from ..weights import read_weights, write_tensors
from .wording import passed

_CONTROL = re.compile(r"\x1b\[[0-9;]*m")  # how PyTorch prints in bold
_PICKLES = (".pth", ".pt", ".ckpt")  # what torch.save writes

# Where training frameworks keep the state dict within what they save.
_ENTRIES = ("state_dict", "model_state_dict", "model_state", "model", "net", "network", "weights")


def read_checkpoint(path: pathlib.Path, entry: str | None = None) -> dict[str, Tensor]:
    """Names and tensors of a .safetensors, .pth, .pt or .ckpt file.

    Args:
        path: of the file.
        entry: where in it the state dict is; default: the usual places are looked at.
    Returns:
        Tensors by name, on the CPU.
    Raises:
        UserError: for what is no checkpoint, or holds more than tensors, and where several places fit.
    Waits:
        Never.
    Example:
        >>> import pathlib
        >>> torch.save({"model": {"a.weight": torch.ones(2)}}, "net.pth")
        >>> convert.read_checkpoint(pathlib.Path("net.pth"))
        {'a.weight': tensor([1., 1.])}
    """
    check_file(path)
    if path.suffix.lower() == ".safetensors":
        return read_safetensors(path)
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    # What is no checkpoint fails in torch.load in any way: its first bytes are taken for instructions.
    except (
        pickle.UnpicklingError, RuntimeError, EOFError, ValueError, LookupError, AttributeError, OSError,
    ) as error:  # fmt: skip
        said = _CONTROL.sub("", str(error)).strip().splitlines()
        reason = f"{type(error).__name__}: {said[0]}" if said else type(error).__name__
        raise _C.UserError(
            f"{path} is not read, since it holds more than tensors or is no checkpoint ({reason}). Where "
            "it comes from a source you trust, load it there and save model.state_dict() alone"
        ) from error
    return _without_wrapper(_state_of(held, entry, path))


def write_checkpoint(path: pathlib.Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes a file by the ending of its name, whole or not at all.

    Args:
        path: .safetensors, or .pth, .pt or .ckpt for what torch.save writes.
        tensors: by name.
    Returns:
        None.
    Raises:
        UserError: for another ending, and where there is no such folder.
    Waits:
        For a GPU, where the tensors are on one.
    Example:
        >>> import pathlib
        >>> convert.write_checkpoint(pathlib.Path("net.pt"), {"a": torch.ones(2)})
        >>> torch.load("net.pt")
        {'a': tensor([1., 1.])}
    """
    check_output(path)
    if path.suffix.lower() == ".safetensors":
        write_safetensors(path, tensors)
        return
    held = io.BytesIO()
    torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, held)
    _C.write_file(path, np.frombuffer(held.getbuffer(), np.uint8))


def check_output(path: pathlib.Path, source: pathlib.Path | None = None) -> None:
    """Raises UserError where `write_checkpoint` would write no file of that name, or would write over `source`."""
    if source is not None and _same_place(path, source):
        raise _C.UserError(f"{path} would be read and written over; give the result another name")
    if not path.absolute().parent.is_dir():
        raise _C.UserError(f"{path}: there is no folder {path.parent}: make it first")
    if path.suffix.lower() not in (".safetensors", *_PICKLES):
        raise _C.UserError(f"{path}: give a name that ends in .safetensors, .pth or .pt")


def _same_place(path: pathlib.Path, other: pathlib.Path) -> bool:
    """Whether two names are of one file, through links too."""
    if path.exists() and other.exists():
        return path.samefile(other)
    return path.resolve() == other.resolve()


def read_safetensors(path: pathlib.Path) -> dict[str, Tensor]:
    """Everything in a safetensors file but its metadata.

    Args:
        path: of the file.
    Returns:
        Tensors by name, on the CPU.
    Raises:
        UserError: for a file that is none.
    Waits:
        Never.
    Example:
        >>> import pathlib
        >>> convert.write_safetensors(pathlib.Path("a.safetensors"), {"a": torch.ones(2)})
        >>> convert.read_safetensors(pathlib.Path("a.safetensors"))
        {'a': tensor([1., 1.])}
    """
    return read_weights(path)[0]


def write_safetensors(path: pathlib.Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes a safetensors file, with names in alphabetic order, whole or not at all.

    Args:
        path: of the file.
        tensors: by name.
    Returns:
        None.
    Raises:
        UserError: for types that such files do not hold.
    Waits:
        For a GPU, where the tensors are on one.
    Example:
        >>> import pathlib
        >>> convert.write_safetensors(pathlib.Path("a.safetensors"), {"a": torch.ones(2)})
    """
    write_tensors(path, dict(sorted(tensors.items())), {"format": "pt"})


def _state_of(held: Any, entry: str | None, path: pathlib.Path) -> dict[str, Tensor]:
    if entry is not None:
        for part in entry.split("."):
            if not isinstance(held, Mapping) or part not in held:
                raise _C.UserError(f"{path} has no entry {entry!r}: it has {_keys(held)}")
            held = held[part]
    elif isinstance(held, Mapping) and not _is_state(held):
        places = [name for name in _ENTRIES if name in held and _is_state(held[name])]
        if len(places) != 1:
            found = "no state dict" if not places else "several state dicts"
            raise _C.UserError(
                f"{path} has {found} among its entries {_keys(held)}: name one, as {passed('entry', _example(held))}"
            )
        held = held[places[0]]
    if not isinstance(held, Mapping) or not _is_state(held):
        raise _C.UserError(f"{path}: entry {entry!r} is no state dict, names with tensors")
    return dict(held)


def _example(held: Mapping[Any, Any]) -> str:
    """The name of an entry, of a state dict where there is one."""
    names = [name for name in held if isinstance(name, str)]
    states = [name for name in names if _is_state(held[name])]
    return _C.printable((states or names or ["ema.state_dict"])[0])


def _is_state(held: Any) -> bool:
    return (
        isinstance(held, Mapping)
        and len(held) > 0
        and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in held.items())
    )


def _keys(held: Any) -> str:
    if not isinstance(held, Mapping):
        return type(held).__name__
    names = [_C.printable(repr(key)) for key in held]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _without_wrapper(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """`state` without the "module." that DistributedDataParallel puts before every name."""
    if all(name.startswith("module.") for name in state):
        return {name[len("module.") :]: tensor for name, tensor in state.items()}
    return state
