"""Trained networks, from a file that says of itself what it takes to run them."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
from collections.abc import Mapping

from .. import _C
from ..weights import load_tensors, read_weights
from .minkunet import MinkUNet42

_FEATURES = "x,y,z,intensity"
# In an installed package, and in a checkout that is imported where it lies.
_PLACES = (
    pathlib.Path(__file__).parents[1] / "pumice" / "models",
    pathlib.Path(__file__).parents[3] / "models",
)


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """A trained network and what its file says of it.

    Args:
        network: on the CPU, float32, in evaluation mode.
        classes: names in the order of the outputs.
        voxel_size: metres along x, y, z.
        metadata: every entry of the file.
    Example:
        >>> trained = models.pretrained("streets")
        >>> len(trained.classes), trained
        (19, Pretrained(MinkUNet42 of ... parameters, 19 classes (car, bicycle, motorcycle, …), voxel_size=(0.1, 0.1, 0.1)))
    """

    network: MinkUNet42  # on the CPU, float32, in evaluation mode
    classes: tuple[str, ...]  # names in the order of the outputs
    voxel_size: tuple[float, float, float]  # metres along x, y, z
    metadata: Mapping[str, str]  # every entry of the file

    def __repr__(self) -> str:
        """In a line: the network itself prints as hundreds."""
        kind, count = type(self.network).__name__, sum(p.numel() for p in self.network.parameters())
        classes = ", ".join((*self.classes[:3], "…") if len(self.classes) > 3 else self.classes)
        return f"Pretrained({kind} of {count:,} parameters, {len(self.classes)} classes ({classes}), voxel_size={self.voxel_size})"


def pretrained(source: str | os.PathLike[str] = "streets") -> Pretrained:
    """A network with its trained weights.

    Args:
        source: "streets", a MinkUNet42 of 1.7 million parameters trained on simulated streets, which often errs on
            recorded ones; or a safetensors file with such metadata, as examples/train_segmentation.py writes.
    Returns:
        A `Pretrained`.
    Raises:
        UserError: for a name that is not there, and for a file whose metadata does not say what the network is.
    Waits:
        Never.
    Example:
        >>> trained = models.pretrained("streets")
        >>> trained.classes[:2], trained.voxel_size
        (('car', 'bicycle'), (0.1, 0.1, 0.1))
    """
    path = _path(source)
    tensors, metadata = read_weights(path)
    network = _entry(path, metadata, "network")
    features = metadata.get("features", _FEATURES)
    if network != "minkunet42" or features != _FEATURES:
        raise _C.UserError(
            f"{path} is a {network} on {features}; pretrained() makes minkunet42 on {_FEATURES}: "
            "make the network and load the file with pumice.load_weights"
        )
    try:
        widths = [int(width) for width in _entry(path, metadata, "widths").split(",")]
        sizes = [float(size) for size in _entry(path, metadata, "voxel_size").split(",")]
    except ValueError as error:
        raise _C.UserError(f"{path}: its metadata holds no numbers where it should: {error}") from error
    if len(sizes) == 1:
        sizes *= 3
    if len(sizes) != 3 or not all(math.isfinite(size) and size > 0 for size in sizes):
        raise _C.UserError(
            f'{path}: its metadata says voxel_size = "{metadata["voxel_size"]}"; it takes one positive '
            "number of metres, or three"
        )
    classes = tuple(_entry(path, metadata, "classes").split(","))
    try:
        model = MinkUNet42(len(features.split(",")), len(classes), widths)
    except _C.UserError as error:
        raise _C.UserError(f"{path}: its metadata says what no network is: {error}") from error
    load_tensors(model, tensors, path)
    return Pretrained(model.eval(), classes, (sizes[0], sizes[1], sizes[2]), metadata)


def _path(source: str | os.PathLike[str]) -> pathlib.Path:
    path = pathlib.Path(source)
    if path.is_file():
        return path
    name = os.fspath(source)
    if path.suffix or path.name != name:
        raise _C.UserError(f"{path}: there is no such file")
    for place in _PLACES:
        file = place / f"{name}.safetensors"
        if file.is_file():
            return file
    known = sorted(file.stem for place in _PLACES for file in place.glob("*.safetensors"))
    raise _C.UserError(
        f'"{name}" is no file, and no network of that name came along; there '
        + (f"is {', '.join(known)}" if known else "are none in this installation")
    )


def _entry(path: pathlib.Path, metadata: Mapping[str, str], key: str) -> str:
    if key not in metadata:
        raise _C.UserError(
            f"{path}: its metadata does not say {key}; make the network and load the file with "
            "pumice.load_weights"
        )
    return metadata[key]
