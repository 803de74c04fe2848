"""The options of examples/train_segmentation.py, and how options are kept over --resume."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from training_run import CannotBegin, load_checkpoint


def parse(
    arguments: Sequence[str] | None, description: str, script: str
) -> tuple[argparse.Namespace, dict[str, Any] | None]:
    """The options of train_segmentation.py, and the checkpoint to go on from or None. Raises
    CannotBegin where there is nothing to go on from, and for a device that is not there."""
    options, saved = parse_resumed(_parser(script, description), arguments, either=("minutes", "steps"))
    if options.minutes is None and options.steps is None:
        options.steps = 5000
    check_device(options.device)
    if options.amp is None:
        options.amp = "f16" if options.device.startswith("cuda") else "off"
    return options, saved


def parse_resumed(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None, either: Sequence[str] = ()
) -> tuple[argparse.Namespace, dict[str, Any] | None]:
    """With --resume, whatever the command line does not say is as the checkpoint has it; where it says one of
    the options `either`, which end a training and have no default, the others are not taken along. Raises
    CannotBegin where --out holds no checkpoint of the script that `parser.prog` names."""
    options = parser.parse_args(arguments)
    if not options.resume:
        return options, None
    saved = load_checkpoint(options.out, parser.prog)
    said = [name for name in either if getattr(options, name) is not None]
    left_out = {"out", *(either if said else ())}
    parser.set_defaults(
        **{n: Path(v) if n == "cache" else v for n, v in saved["options"].items() if n not in left_out}
    )
    return parser.parse_args(arguments), saved


def check_device(name: str) -> None:
    """Raises CannotBegin where there is no such device."""
    try:
        device = torch.device(name if name.split(":")[0] in ("cpu", "cuda") else "")
    except RuntimeError as error:
        raise CannotBegin(f"--device {name}: give cpu, cuda, or cuda:0, cuda:1, …") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise CannotBegin(
            f"--device {name}: PyTorch finds {torch.cuda.device_count()} GPUs here; give another, or cpu"
        )


def to_save(options: argparse.Namespace) -> dict[str, Any]:
    """Plain values, which torch.load reads without running code."""
    values = {name: value for name, value in vars(options).items() if name != "resume"}
    return {n: str(v) if isinstance(v, Path) else v for n, v in values.items()}


def positive(text: str) -> int:
    """A type of argparse: a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is less than 1")
    return value


def not_negative(text: str) -> int:
    """A type of argparse: a whole number of at least 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{value} is less than 0")
    return value


def above_zero(text: str) -> float:
    """A type of argparse: a number above 0."""
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def _parser(script: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=script,
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("--out", type=Path, default=Path("run"), help="folder for everything that is written")
    add("--minutes", type=above_zero, help="stop in time to be finished after this long")
    add("--steps", type=positive, help="stop after so many steps (default: 5000 without --minutes)")
    add("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    add("--amp", choices=["off", "f16", "bf16"], default=None, help="default: f16 on a GPU")
    add("--widths", default="32,32,32,48,48,48,48,32,32", help="spvnas, driving or nine numbers")
    add("--voxel", type=above_zero, default=0.1, help="metres")
    add("--beams", type=int, choices=[32, 64], default=64, help="of the simulated sensor")
    add("--scans", type=positive, default=2000, help="streets to train on")
    add("--validation", type=positive, default=16, help="other streets, measured now and then")
    add("--test", type=positive, default=48, help="still others, measured at the end")
    add("--batch", type=positive, default=8, help="scans a step")
    add("--rate", type=above_zero, default=4e-3, help="highest learning rate")
    add("--mix", type=float, default=0.0, help="probability of a sector from another scan")
    add("--workers", type=not_negative, default=max(1, len(os.sched_getaffinity(0)) - 2))
    add("--every", type=above_zero, default=60, help="seconds between validations")
    add("--cache", type=Path, default=cache_folder(), help="folder that simulated streets are kept in")
    add("--seed", type=not_negative, default=0)
    add("--resume", action="store_true", help="go on from the checkpoint in --out, with its options")
    return parser


def cache_folder() -> Path:
    """Of this user."""
    return Path(tempfile.gettempdir()) / f"pumice_streets_{os.getuid()}"
