"""Weights to and from safetensors files, which `pumice run --weights` reads as well."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import torch

from . import _C

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_TYPES = {name: dtype for dtype, name in _NAMES.items()}
_COUNTS = "num_batches_tracked"  # of norms; no network needs it


def save_weights(
    model: torch.nn.Module | Mapping[str, torch.Tensor],
    path: str | os.PathLike[str],
    dtype: torch.dtype | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a module's state, or tensors by name, into a safetensors file, which appears whole or not at all.

    Args:
        model: a module, or tensors by name.
        path: of the file.
        dtype: what floats are rounded to; default: their own type.
        metadata: texts by name, which the file carries along.
    Returns:
        None.
    Raises:
        UserError: where there is no such folder, and for types that such files do not hold.
    Waits:
        For a GPU, where the tensors are on one.
    Example:
        >>> layer = nn.SubMConv3d(4, 8, 3)
        >>> pumice.save_weights(layer, "layer.safetensors")
        >>> pumice.load_weights(layer, "layer.safetensors")
        {}
    """
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if not os.path.isdir(folder):
        raise _C.UserError(f"{os.fspath(path)}: there is no folder {folder}: make it first")
    state = model.state_dict() if isinstance(model, torch.nn.Module) else dict(model)
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    parts: list[bytes] = []
    end = 0
    for name, value in state.items():
        if name.endswith(_COUNTS):
            continue
        value = value.detach().cpu()
        if dtype is not None and value.is_floating_point():
            value = value.to(dtype)
        if value.dtype not in _NAMES:
            raise _C.UserError(f"{name} is {value.dtype}, which safetensors files do not hold")
        data = value.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        begin, end = end, end + len(data)
        header[name] = {
            "dtype": _NAMES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [begin, end],
        }
        parts.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    temporary = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        with open(temporary, "wb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            file.writelines(parts)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def read_weights(path: str | os.PathLike[str]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """What a safetensors file holds.

    Args:
        path: of the file.
    Returns:
        (tensors by name, metadata).
    Raises:
        UserError: for a file that is none, or one of torch.save.
    Waits:
        Never.
    Example:
        >>> pumice.save_weights({"a": torch.ones(2)}, "a.safetensors", metadata={"by": "hand"})
        >>> pumice.read_weights("a.safetensors")
        ({'a': tensor([1., 1.])}, {'by': 'hand'})
    """
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"PK" or data[:1] == b"\x80":  # a zip archive, or a pickle
        raise _C.UserError(
            f"{os.fspath(path)} is a file of torch.save: read it with torch.load and "
            "model.load_state_dict, or convert it with `pumice convert`"
        )
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = header.pop("__metadata__", {})
        body = bytearray(data[8 + length :])
        tensors = {name: _tensor(body, entry) for name, entry in header.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _C.UserError(f"{os.fspath(path)} is no safetensors file: {error}") from error
    return tensors, metadata


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> dict[str, str]:
    """Loads what `save_weights` wrote, converted to the types of the model.

    Args:
        model: a module, written in place.
        path: of the file.
    Returns:
        The metadata of the file.
    Raises:
        UserError: for a name too few or too many, and for another shape; nothing is loaded then.
    Waits:
        For a GPU, where the model is on one.
    Example:
        >>> layer = nn.SubMConv3d(4, 8, 3)
        >>> pumice.save_weights(layer, "layer.safetensors", metadata={"by": "hand"})
        >>> pumice.load_weights(layer, "layer.safetensors")
        {'by': 'hand'}
    """
    tensors, metadata = read_weights(path)
    load_tensors(model, tensors, path)
    return metadata


def load_tensors(
    model: torch.nn.Module, tensors: Mapping[str, torch.Tensor], path: str | os.PathLike[str]
) -> None:
    """What `load_weights` does with tensors that were read from `path`."""
    own = {k: v for k, v in model.state_dict().items() if not k.endswith(_COUNTS)}
    given = {k: v for k, v in tensors.items() if not k.endswith(_COUNTS)}
    for kind, names in (("lacks", own.keys() - given.keys()), ("has", given.keys() - own.keys())):
        if names:
            some = ", ".join(sorted(names)[:3]) + (", …" if len(names) > 3 else "")
            which = "which the network needs" if kind == "lacks" else "which the network has not"
            raise _C.UserError(f"{os.fspath(path)} {kind} {some}, {which}")
    for name, value in own.items():
        if value.shape != given[name].shape:
            raise _C.UserError(
                f"{os.fspath(path)}: {name} has shape {list(given[name].shape)}, the network's "
                f"has {list(value.shape)}"
            )
    model.load_state_dict(given, strict=False)


def _tensor(body: bytearray, entry: dict) -> torch.Tensor:
    dtype = _TYPES[entry["dtype"]]
    begin, end = entry["data_offsets"]
    if begin == end:
        return torch.empty(entry["shape"], dtype=dtype)
    return torch.frombuffer(body[begin:end], dtype=dtype).reshape(entry["shape"])
