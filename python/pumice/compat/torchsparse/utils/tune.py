"""Tuning, which is nobody's work here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch

from .. import conventions

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
    """Returns at once, and reads no data: Pumice chooses the algorithm of each layer when it runs, and no
    setting of TorchSparse's kernels, which are what TorchSparse tunes, changes it."""
