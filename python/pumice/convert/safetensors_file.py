"""The safetensors format: the length of a header, the header in JSON, then the elements."""

from __future__ import annotations

import json
import math
import os
import pathlib
from collections.abc import Mapping

import torch
from torch import Tensor

from .. import _C

_TYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}
_LONGEST_HEADER = 100_000_000


def read_safetensors(path: pathlib.Path) -> dict[str, Tensor]:
    """Everything in the file. Raises UserError where header and file do not agree."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little") if len(data) >= 8 else -1
    if length < 0 or length > min(_LONGEST_HEADER, len(data) - 8):
        raise _C.UserError(f"{path} is no safetensors file: its header is longer than the file")
    try:
        header = json.loads(data[8 : 8 + length])
        entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
        return {name: _tensor(data, 8 + length, entry) for name, entry in entries.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _C.UserError(f"{path} is no safetensors file: {error}") from error


def _tensor(data: bytes, start: int, entry: Mapping[str, object]) -> Tensor:
    dtype, shape = _TYPES[entry["dtype"]], [int(extent) for extent in entry["shape"]]
    begin, end = entry["data_offsets"]
    count = math.prod(shape)
    if min(shape, default=0) < 0 or begin < 0 or end - begin != count * dtype.itemsize:
        raise ValueError(f"shape {shape} does not fit {end - begin} bytes")
    if start + end > len(data):
        raise ValueError("it ends too early")
    if count == 0:
        return torch.empty(shape, dtype=dtype)
    piece = bytearray(data[start + begin : start + end])
    return torch.frombuffer(piece, dtype=dtype, count=count).reshape(shape)


def write_safetensors(path: pathlib.Path, tensors: Mapping[str, Tensor]) -> None:
    """Whole or not at all."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    position = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        if tensor.dtype not in _NAMES:
            raise _C.UserError(f"{name} is of {tensor.dtype}, which safetensors has not")
        size = tensor.numel() * tensor.dtype.itemsize
        header[name] = {
            "dtype": _NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [position, position + size],
        }
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    unfinished = path.with_name(path.name + ".part")
    with unfinished.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in sorted(tensors):
            flat = tensors[name].detach().cpu().contiguous().reshape(-1)
            file.write(flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b"")
    os.replace(unfinished, path)
