"""Tuning as TorchSparse has it, by `pumice.tune`."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .... import _C
from ...._checks import kind_of, warn_once, whole_number
from ....passes import as_it_was, check_alone, check_model
from ....tuning import tune_passes
from .. import conventions
from ..tensor import SparseTensor

_MOST_SAMPLES = 8  # whose maps are kept while layers are measured

_BEFORE = (
    "model", "data_loader", "n_samples", "collect_fn", "enable_fp16", "kmap_mode", "save_dir", "tune_id",
)  # fmt: skip


@conventions.by_release(_BEFORE, renamed={"tune_id": "tune_tag"})
def tune(
    model: torch.nn.Module,
    data_loader: Iterable[Any],
    n_samples: int = 100,
    collect_fn: Callable[[Any], Any] = lambda data: data,
    enable_fp16: bool = False,
    save_dir: str = ".torchsparse-tune",
    tune_tag: str = "temp",
    force_retune: bool = False,
    dataflow_range: Sequence[Any] = (),
    dataflow_prune: bool = False,
    tune_with_bwd: bool = False,
    verbose: bool = True,
    skip_warning: bool = False,
    kmap_mode: str = "hashmap",
) -> None:
    """Measures the plans of Pumice that could run in place of each convolution (`pumice.tune`), and keeps those that
    are faster in the user's store and in `save_dir/tune_tag.json`. Where that file is there, measured on such a device
    by this version, its plans are taken and nothing is measured, unless `force_retune` says so.

    `model(collect_fn(item))` is run for the first `n_samples` items, at most 8, under autocast to float16 where
    `enable_fp16` says so; with `tune_with_bwd` the gradients of the mean of all features it returns are tuned too.
    TorchSparse's own dataflows are not measured: `dataflow_range`, `dataflow_prune` and `kmap_mode` have no effect."""
    if len(dataflow_range) > 0 or dataflow_prune:
        warn_once(
            "torchsparse tune dataflows",
            "tune: dataflow_range and dataflow_prune have no effect: Pumice measures the plans of its own kernels",
        )
    _check(model, data_loader, n_samples, collect_fn)
    device = next((value.device for value in model.parameters()), torch.device("cpu"))
    file = _file(save_dir, tune_tag)
    if file.exists() and not force_retune and (taken := _taken(file, device)) > 0:
        _say(verbose, f"tune: {taken} plans are taken from {file}")
        return
    items = list(itertools.islice(data_loader, min(n_samples, _MOST_SAMPLES)))
    if not items:
        raise _C.UserError("data_loader has no items: give at least one sample")
    inputs = [collect_fn(item) for item in items]

    def run(sample: int) -> None:
        x = _fresh(inputs[sample], device)
        with (
            torch.set_grad_enabled(tune_with_bwd),
            torch.autocast(device.type, torch.float16, enabled=enable_fp16 and device.type == "cuda"),
        ):
            result = model(x)
            if tune_with_bwd:
                value = sum(feats.float().mean() for feats in _features(result) if feats.requires_grad)
                if isinstance(value, Tensor):
                    value.backward()
                for parameter in model.parameters():
                    parameter.grad = None

    with as_it_was(model):
        if model.training != tune_with_bwd:  # else parts that are frozen stay so
            model.train(tune_with_bwd)
        tuning = tune_passes(run, len(items), device, None, True, verbose)
    _say(verbose, tuning.summary)
    tuning.save(file)


def _check(model: Any, data_loader: Any, n_samples: Any, collect_fn: Any) -> None:
    check_model(model)
    check_alone(model)
    if isinstance(data_loader, SparseTensor) or not hasattr(data_loader, "__iter__"):
        raise _C.UserError(f"data_loader is {kind_of(data_loader)}: give a list of samples, [x], or a DataLoader")
    whole_number("n_samples", n_samples, 1)
    if not callable(collect_fn):
        raise _C.UserError(f"collect_fn is {kind_of(collect_fn)}: give a function, as lambda sample: sample['input']")


def _file(save_dir: Any, tune_tag: Any) -> Path:
    """The table in its folder, which is made before anything is measured."""
    for name, value in (("save_dir", save_dir), ("tune_tag", tune_tag)):
        if not isinstance(value, (str, os.PathLike)):
            raise _C.UserError(f"{name} is {kind_of(value)}: give a name")
    folder = Path(save_dir).expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _C.UserError(
            f"save_dir = {str(save_dir)!r} cannot be made ({error.strerror}): name a folder that is there or can be made"
        ) from error
    return folder / f"{tune_tag}.json"


def _taken(file: Path, device: torch.device) -> int:
    """Takes the plans of a table that was written before, and returns how many are for `device`."""
    try:
        _C.load_plans(os.fspath(file))
    except _C.UserError as error:
        raise _C.UserError(f"{error}; force_retune=True measures again and replaces the table") from error
    return _C.count_plans_for(os.fspath(file), str(device))


def _say(verbose: bool, text: str) -> None:
    if verbose:
        print(text)


def _fresh(x: Any, device: torch.device) -> Any:
    """`x` on `device`, its sparse tensors without the maps that earlier calls have made."""
    if isinstance(x, SparseTensor):
        return SparseTensor(x.feats.detach().to(device), x.coords.to(device), x.stride, x.spatial_range)
    if isinstance(x, Tensor):
        return x.detach().to(device)
    if isinstance(x, Mapping):
        return {key: _fresh(value, device) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        values = [_fresh(value, device) for value in x]
        return type(x)(*values) if hasattr(x, "_fields") else type(x)(values)
    return x


def _features(x: Any) -> Iterator[Tensor]:
    """Of all tensors in a result."""
    if isinstance(x, SparseTensor):
        yield x.feats
    elif isinstance(x, Tensor):
        yield x
    elif isinstance(x, (Mapping, list, tuple)):
        for value in x.values() if isinstance(x, Mapping) else x:
            yield from _features(value)
