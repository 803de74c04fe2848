"""Tuning, which is nobody's work here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch


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
) -> None:
    """Returns at once, and reads no data: Pumice chooses the algorithm of each layer when it runs, and no
    setting of TorchSparse's kernels, which are what TorchSparse tunes, changes it."""
