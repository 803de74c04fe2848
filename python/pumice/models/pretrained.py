"""Loads trained networks from files whose metadata says which network they are of."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NoReturn

from .. import _C
from .._checks import check_path
from ..weights import load_from
from .minkunet import MinkUNet42


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

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _C.UserError("a Pretrained holds a network and what its file says of it: call trained.network(x)")

    def __getattr__(self, name: str) -> NoReturn:
        what = f"a Pretrained has no {name!r}"
        if not name.startswith("_") and hasattr(MinkUNet42, name):
            raise AttributeError(f"{what}: it is trained.network.{name}, of the network")
        raise AttributeError(f"{what}: it has network, classes, voxel_size and metadata")

    def __repr__(self) -> str:
        """One line, since the network itself prints as hundreds."""
        kind, count = type(self.network).__name__, sum(p.numel() for p in self.network.parameters())
        classes = ", ".join((*self.classes[:3], "…") if len(self.classes) > 3 else self.classes)
        return f"Pretrained({kind} of {count:,} parameters, {len(self.classes)} classes ({classes}), voxel_size={self.voxel_size})"


def pretrained(source: str | os.PathLike[str] = "streets") -> Pretrained:
    """A network with its trained weights.

    Args:
        source: "streets", a MinkUNet42 of 1.7 million parameters trained on simulated streets, which often errs on
            recorded ones; or a safetensors file with such metadata, as `pumice.save_weights` writes it of a network
            with voxel_size and classes. Names are looked for where `pumice run --weights` looks.
    Returns:
        A `Pretrained`, whose `network` is the `MinkUNet42`.
    Raises:
        UserError: for a name that no installed weights have, and for a file whose metadata does not say what the network is.
    Waits:
        Never.
    Example:
        >>> trained = models.pretrained("streets")
        >>> trained.classes[:2], trained.voxel_size
        (('car', 'bicycle'), (0.1, 0.1, 0.1))
    """
    check_path("source", source)
    file = _C.SafetensorsFile.open(_C.find_weights(os.fspath(source)))
    card = file.card()
    if card["network"] not in ("", "minkunet42"):
        raise _C.UserError(
            f"{file.name} is a {_C.printable(card['network'])}; pretrained() makes minkunet42: make the "
            "network and load the file with pumice.load_weights"
        )
    for key in ("network", "widths", "voxel_size", "classes"):
        if not card[key]:
            raise _C.UserError(
                f"{file.name}: its metadata does not say {key}; make the network and load the file with "
                "pumice.load_weights"
            )
    _check_classes(file, len(card["classes"]))
    in_channels = card["in_channels"] or _size(file, "stem.0.weight", 1) or 4
    model = MinkUNet42(in_channels, len(card["classes"]), card["widths"])
    load_from(model, file)
    sizes = card["voxel_size"]
    return Pretrained(model.eval(), tuple(card["classes"]), tuple(sizes), file.metadata)


def _check_classes(file: _C.SafetensorsFile, named: int) -> None:
    """Raises UserError where the network in the file has other outputs than its metadata has names of classes."""
    outputs = _size(file, "classifier.0.weight", 0)
    if outputs not in (0, named):
        raise _C.UserError(
            f"{file.name}: its network has {outputs} outputs, and its metadata names {named} classes: write it with "
            "pumice.save_weights(model, path, metadata=…) with as many names under classes"
        )


def _size(file: _C.SafetensorsFile, name: str, axis: int) -> int:
    """The extent of a tensor; 0 where there is none, which load_from says."""
    shape = file.look(name)[1] if name in file.names else []
    return shape[axis] if axis < len(shape) else 0
