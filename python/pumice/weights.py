"""Reads and writes weights as safetensors files, which `pumice run --weights` reads as well."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping

from . import _needs_torch  # noqa: F401  (first, since it says what is missing)

import torch

from . import _C
from ._checks import check_path, kind_of, shown, warn_once
from .nn import Convolution

# The names of the format.
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

Path = str | os.PathLike[str]
_READ = ("voxel_size", "classes")  # of metadata, by `pumice run --weights`


def save_weights(
    model: torch.nn.Module | Mapping[str, torch.Tensor],
    path: Path,
    dtype: torch.dtype | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes a module's state, or tensors by name, into a safetensors file, which appears whole or not at all,
    whatever other threads and processes write there. A network of `pumice.models`, also inside
    DistributedDataParallel or torch.compile, says with it what it is, so that `pumice run` takes the file as it is.

    Args:
        model: a module, or tensors by name.
        path: of the file.
        dtype: what floats are rounded to; default: their own type.
        metadata: texts by name that the file holds beside `model_card(model)`: what training knows, as voxel_size,
            classes, labels, colours, and anything else.
    Returns:
        None.
    Raises:
        UserError: where there is no such folder, for metadata that contradicts the network or that `pumice run`
            would refuse, and for types that such files do not hold; nothing is written then.
    Waits:
        For a GPU, where the tensors are on one.
    Example:
        >>> layer = nn.SubMConv3d(4, 8, 3)
        >>> pumice.save_weights(layer, "layer.safetensors")
        >>> pumice.load_weights(layer, "layer.safetensors")
        {}
    """
    _check_kinds(model, path, dtype)
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    if not os.path.isdir(folder):
        raise _C.UserError(f"{os.fspath(path)}: there is no folder {folder}: make it first")
    if metadata is not None and not hasattr(metadata, "keys"):
        raise _C.UserError(f"metadata {shown(metadata)}: give a dictionary of texts, as {{'voxel_size': '0.1'}}")
    said = dict(metadata or {})
    for key, value in said.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise _C.UserError(f"metadata[{key!r}] = {value!r}: files hold pairs of text, so give str")
        meant = difflib.get_close_matches(key, _READ, 1, 0.8)
        if meant and meant != [key]:
            warn_once(
                f"metadata {key}",
                f"metadata[{key!r}] is kept and read by nothing: is {meant[0]!r} meant, which `pumice run --weights` reads?",
            )
    if isinstance(model, torch.nn.Module):
        model = network_in(model)
        said = _with_card(model, said, path)
        state = model.state_dict()
    else:
        state = dict(model)
    tensors = {}
    for name, value in state.items():
        if not isinstance(value, torch.Tensor):
            raise _C.UserError(
                f"{name!r} is {kind_of(value)}: give a module, or tensors by name, as the entry of a "
                "checkpoint that holds the state of the network"
            )
        if name.endswith(_COUNTS):
            continue
        rounded = dtype is not None and value.is_floating_point()
        tensors[name] = value.to(dtype) if rounded else value
    if "voxel_size" in said:
        _check_size(said["voxel_size"])
    write_tensors(path, tensors, said)


def _check_size(text: str) -> None:
    """Raises UserError unless `text` is a voxel size as `pumice run --weights` reads it."""
    try:
        sizes = [float(part) for part in text.split(",")]
    except ValueError:
        sizes = []
    if len(sizes) not in (1, 3) or not all(0 < size < float("inf") for size in sizes):
        raise _C.UserError(
            f"metadata['voxel_size'] = {text!r}: give one positive number of metres, or three for x, y, z, as '0.1,0.1,0.2'"
        )


def _check_kinds(model: object, path: object, dtype: object) -> None:
    """Raises UserError for arguments of `save_weights` in another order."""
    if not isinstance(model, (torch.nn.Module, Mapping)):
        raise _C.UserError(f"model is {kind_of(model)}: give a module or tensors by name, then the path")
    check_path("path", path)
    if os.path.splitext(path)[1].lower() in (".pth", ".pt", ".ckpt"):
        raise _C.UserError(
            f"{os.fspath(path)}: weights are written as safetensors, and such a file is torch.save's: name it .safetensors"
        )
    ending = os.path.splitext(path)[1]
    if ending.lower() != ".safetensors" and ending[1:].isalpha():  # a version, as v2 or 0.1, is no ending
        warn_once(
            f"ending {ending}",
            f"{os.fspath(path)}: weights are written as safetensors, whatever the name says: name it .safetensors",
        )
    if dtype is not None and not isinstance(dtype, torch.dtype):
        remedy = "metadata=" if isinstance(dtype, Mapping) else "a type, as torch.float16"
        raise _C.UserError(f"dtype is {kind_of(dtype)}: give {remedy}")
    if dtype is not None and not dtype.is_floating_point:
        raise _C.UserError(f"dtype = {dtype}: weights are floating-point numbers: give such a type, as torch.float16")


def model_card(model: torch.nn.Module) -> dict[str, str]:
    """What a network of `pumice.models` says of itself in its file of weights.

    Args:
        model: a module, also inside DistributedDataParallel or torch.compile.
    Returns:
        network, in_channels, outputs and widths as texts by name; nothing for other modules.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> pumice.model_card(models.MinkUNet42(4, 19, width_factor=0.25))["network"]
        'minkunet42'
    """
    card = getattr(network_in(model), "card", None)
    return dict(card()) if callable(card) else {}


def network_in(model: torch.nn.Module) -> torch.nn.Module:
    """The network inside the wrappers of torch.compile and DistributedDataParallel, which change the names of
    parameters."""
    while True:
        if isinstance(model, (torch.nn.parallel.DistributedDataParallel, torch.nn.DataParallel)):
            model = model.module
        elif isinstance(inner := getattr(model, "_orig_mod", None), torch.nn.Module):
            model = inner
        else:
            return model


def read_weights(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
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
    file = _opened(path)
    return read_tensors(file), file.metadata


def load_weights(model: torch.nn.Module, path: Path) -> dict[str, str]:
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
    if not isinstance(model, torch.nn.Module):
        raise _C.UserError(f"model is {kind_of(model)}: give load_weights(model, path), a module and then the path")
    file = _opened(path)
    load_from(network_in(model), file)
    return file.metadata


def _opened(path: Path) -> _C.SafetensorsFile:
    check_path("path", path)
    return _C.SafetensorsFile.open(path)


def load_from(model: torch.nn.Module, file: _C.SafetensorsFile) -> None:
    """What `load_weights` does with a file that is open."""
    own = {k: v for k, v in model.state_dict().items() if not k.endswith(_COUNTS)}
    given = {name for name in file.names if not name.endswith(_COUNTS)}
    for kind, names in (("lacks", own.keys() - given), ("has", given - own.keys())):
        if names:
            some = ", ".join(_C.printable(name) for name in sorted(names)[:3])
            some += ", …" if len(names) > 3 else ""
            which = "which the network needs" if kind == "lacks" else "which the network has not"
            raise _C.UserError(f"{file.name} {kind} {some}, {which}")
    shapes = {name: (file.look(name)[1], list(value.shape)) for name, value in own.items()}
    wrong = {name: both for name, both in shapes.items() if both[0] != both[1]}
    if wrong:
        name, (there, here) = next(iter(wrong.items()))
        raise _C.UserError(
            _other_ends(model, file, wrong)
            or f"{file.name}: {name} has shape {there}, the network's has {here}" + _widths_of(model, file)
        )
    model.load_state_dict({name: _tensor(file, name) for name in own}, strict=False)


def read_tensors(file: _C.SafetensorsFile) -> dict[str, torch.Tensor]:
    """All tensors of an open file, by name."""
    return {name: _tensor(file, name) for name in file.names}


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str]) -> None:
    """Writes tensors as they are, in their order."""
    entries = []
    for name, value in tensors.items():
        if value.dtype not in _NAMES:
            raise _C.UserError(
                f"{_C.printable(name)} is {value.dtype}, which safetensors files do not hold"
            )
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        entries.append((name, _NAMES[value.dtype], list(value.shape), flat.numpy()))
    _C.write_safetensors(path, entries, dict(metadata))


def _tensor(file: _C.SafetensorsFile, name: str) -> torch.Tensor:
    type_name, shape = file.look(name)
    tensor = torch.empty(shape, dtype=_TYPES[type_name])
    file.read(name, tensor.reshape(-1).view(torch.uint8).numpy())
    return tensor


def _with_card(model: torch.nn.Module, said: dict[str, str], path: Path) -> dict[str, str]:
    """The card, then what else is said; where that is the card's own, it has to say the same."""
    card = model_card(model)
    for key, value in card.items():
        if key in said and said[key] != value:
            raise _C.UserError(
                f"metadata says {key} = {_C.printable(str(said[key]))!r}, but the network has {value}: "
                "leave it out, since save_weights writes it"
            )
    if card:
        _C.read_card({**card, **said}, os.fspath(path))
    return {**card, **said}


# Which axes of a layer's parameters are its inputs, and its outputs.
_AXES: dict[type, dict[str, tuple[int | None, int]]] = {
    Convolution: {"weight": (1, 2), "bias": (None, 0)},
    torch.nn.Linear: {"weight": (1, 0), "bias": (None, 0)},
}


def _other_ends(
    model: torch.nn.Module, file: _C.SafetensorsFile, wrong: Mapping[str, tuple[list[int], list[int]]]
) -> str:
    """What to say where the file's network differs in nothing but the channels that go into its first layer, and
    those that come out of one, as the classes do; empty where it differs in more."""
    ins: dict[str, tuple[int, int]] = {}
    outs: dict[str, tuple[int, int]] = {}
    modules = dict(model.named_modules())
    for name, (there, here) in wrong.items():
        path, _, parameter = name.rpartition(".")
        axes = [axis for axis in range(len(here)) if len(there) == len(here) and there[axis] != here[axis]]
        ends = [_end_at(modules.get(path), parameter, axis, here) for axis in axes]
        if "" in ends or not 0 < len(set(ends)) == len(ends):
            return ""
        for end, axis in zip(ends, axes):
            (ins if end == "in" else outs)[path] = (there[axis], here[axis])
    first = next((name for name, _ in model.named_parameters()), "").rpartition(".")[0]
    if len(outs) > 1 or any(path != first for path in ins):
        return ""
    theirs = [_counted("input channel", there) for there, _ in ins.values()]
    theirs += [_counted("output", there) for there, _ in outs.values()]
    ours = [str(here) for _, here in (*ins.values(), *outs.values())]
    text = f"{file.name} has {' and '.join(theirs)}, and the network {' and '.join(ours)}: "
    made = getattr(model, "made_with", None)
    if callable(made):
        wanted = [next(iter(end.values()), (None,))[0] for end in (ins, outs)]
        text += f"make it with {made(*wanted)}"
    else:
        layers: dict[str, list[str]] = {}
        for path, end in zip((*ins, *outs), theirs):
            layers.setdefault(f"layer {path}" if path else "the layer", []).append(end)
        text += "make " + " and ".join(f"{layer} with {' and '.join(ends)}" for layer, ends in layers.items())
    last = next(iter(outs), "")
    if last and not ins:
        text += (
            f"; or, to train layer {last} anew, give model.load_state_dict(…, strict=False) what "
            "pumice.read_weights reads, without that layer"
        )
    return text


def _end_at(layer: torch.nn.Module | None, parameter: str, axis: int, shape: list[int]) -> str:
    """"in" or "out", which channels that axis of a layer's parameter stands for; empty where that is not known. In
    other interfaces' layouts it is the axis that is as long as the layer has channels."""
    known = next((axes for kind, axes in _AXES.items() if isinstance(layer, kind)), None)
    if known is not None:
        there = [known[parameter]] if parameter in known else []
        ends = [end for axes in there for end, place in zip(("in", "out"), axes) if place == axis]
    else:
        ends = [end for end in ("in", "out") if getattr(layer, f"{end}_channels", None) == shape[axis]]
    return ends[0] if len(ends) == 1 else ""


def _counted(what: str, count: int) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def _widths_of(model: torch.nn.Module, file: _C.SafetensorsFile) -> str:
    """What to add to an error where the file is of the same network in other widths."""
    if "widths" not in model_card(model):
        return ""
    said = file.metadata.get("widths")
    if said == model_card(model)["widths"]:
        return ""
    if said is not None:
        return f"; it is of a network of widths={_C.printable(said)}"
    options = file.fitting_options()
    if not options:
        return ""
    words = options.replace("--", "").replace("width-factor ", "width_factor=").replace("widths ", "widths=")
    return f"; its shapes fit {words.replace(' ', ', ')}"
