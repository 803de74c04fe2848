"""Implements the command `pumice convert`."""

from __future__ import annotations

import argparse
import pathlib
import sys
from collections.abc import Sequence
from typing import NoReturn

import torch

from .. import _C
from .checkpoint import check_output, read_checkpoint, write_checkpoint
from .kernels import Choices
from .layouts import LAYOUTS
from .state import Converted, as_type, convert_held
from .wording import for_command

_TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        said = _C.printable(message, 400)
        print(f"pumice: {said}; `pumice convert --help` says what it takes", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="pumice convert",
        description="Converts a checkpoint of one sparse convolution library to another's, and checks "
        "every layer on random input.",
    )
    add = parser.add_argument
    add("checkpoint", type=pathlib.Path, help=".safetensors, .pth or .pt")
    add("--from", dest="source", required=True, choices=list(LAYOUTS), help="who wrote it")
    add("--to", dest="target", default="pumice", choices=list(LAYOUTS), help="default: pumice")
    add("--output", "-o", type=pathlib.Path,
        help=".safetensors, .pth or .pt; default: CHECKPOINT.TARGET.safetensors")
    add("--entry", help="where in the checkpoint the state dict is, as `ema.state_dict`")
    add("--dimension", type=int, default=3, choices=[1, 2, 3, 4])
    add("--kernel-size", action="append", default=[], metavar="NAME=5 or NAME=1,3,3")
    add("--strided-pointwise", action="append", default=[], metavar="NAME",
        help="a 1x1 convolution whose stride is not 1")
    add("--reverse-axes", action="store_true",
        help="from coordinates z, y, x to x, y, z, or back: turns every kernel round")
    add("--rename", action="append", default=[], metavar="PATTERN=REPLACEMENT",
        help="regular expression, applied to every new name")
    add("--keep", action="append", default=[], metavar="NAME", help="carry over as it is")
    add("--drop", action="append", default=[], metavar="NAME", help="leave out")
    add("--dtype", choices=list(_TYPES), help="floating type of the result")
    add("--check", action=argparse.BooleanOptionalAction, default=True,
        help="compare every layer with a dense reference (default)")
    return parser


def _pairs(texts: Sequence[str], option: str, form: str) -> list[tuple[str, str]]:
    for text in texts:
        if "=" not in text:
            raise _C.UserError(f"{option} {text}: there is no = in it; give {form}")
    return [(name, value) for name, _, value in (text.partition("=") for text in texts)]


def _sizes(texts: Sequence[str]) -> dict[str, list[int]]:
    pairs = _pairs(texts, "--kernel-size", "the layer too, as NAME=3 or NAME=1,3,3")
    try:
        return {name: [int(part) for part in value.replace("x", ",").split(",")] for name, value in pairs}
    except ValueError as error:
        raise _C.UserError(f"--kernel-size {' '.join(texts)}: sizes are whole numbers, as NAME=1,3,3") from error


def _report(result: Converted, checked: bool) -> None:
    for kernel in result.kernels:
        size = "x".join(map(str, kernel.size))
        error = f"  error {kernel.error:.0e}" if kernel.error is not None else ""
        print(f"{size:>9}  {list(kernel.shape)} -> {list(kernel.new_shape)}  {_C.printable(kernel.new_name, 120)}{error}")
    verdict = "each gives the same numbers as the original" if checked else "not checked"
    print(f"{len(result.kernels)} convolutions, {verdict}; {len(result.kept)} other entries kept", end="")
    print(f", {len(result.dropped)} left out" if result.dropped else "")


def main(arguments: Sequence[str]) -> int:
    """`pumice convert`: the status the process ends with; mistakes are said on standard error."""
    options = _parser().parse_args(arguments)
    with for_command():
        return _run(options)


def _run(options: argparse.Namespace) -> int:
    try:
        output = options.output or options.checkpoint.with_suffix(f".{options.target}.safetensors")
        check_output(output, options.checkpoint)
        choices = Choices(
            dimension=options.dimension,
            kernel_size=_sizes(options.kernel_size),
            strided=options.strided_pointwise,
            keep=options.keep,
            drop=options.drop,
            rename=_pairs(options.rename, "--rename", "PATTERN=REPLACEMENT"),
            reverse_axes=options.reverse_axes,
        )
        state = read_checkpoint(options.checkpoint, options.entry)
        name = str(options.checkpoint)
        result = convert_held(name, state, options.source, options.target, choices, options.check)
        if options.dtype:
            result.tensors = as_type(result.tensors, _TYPES[options.dtype])
        write_checkpoint(output, result.tensors)
    except (_C.UserError, OSError) as error:
        print(f"pumice: {_C.UserError(str(error))}", file=sys.stderr)
        return 1
    _report(result, options.check)
    print(f"written to {_C.printable_path(output)}")
    if options.target == "pumice" and output.suffix.lower() != ".safetensors":
        print("for torch.load; `pumice run --weights` and pumice.load_weights read .safetensors: give -o such a name")
    return 0
