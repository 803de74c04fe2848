"""What layers record of tensors that are made with `benchmark = True`."""

from __future__ import annotations

import time
from typing import Any

import torch

from .... import _C
from .. import constants
from .core import SparseConvTensor
from .windowed import WindowedModule


class Stopwatch:
    """Writes seconds and rows of one call of a layer into `x.benchmark_record[layer.name]`. A layer
    without a name records nothing (spconv refuses it)."""

    def __init__(self, layer: WindowedModule, x: SparseConvTensor) -> None:
        if layer.name is None and constants.REFUSE_AS_SPCONV:
            raise _C.UserError(
                f"{layer.describe()}: name it before the input is made with benchmark = True"
            )
        self._record: dict[str, Any] = {}
        if layer.name is not None:
            self._record = x.benchmark_record.setdefault(layer.name, {
                "type": layer._benchmark_type,
                "indice_gen_time": [],
                "time": [],
                "num_points": [],
                "num_out_points": [],
                "params": layer._benchmark_params(x),
            })  # fmt: skip
        self._device = x.features.device
        self._rows = x.indices.shape[0]
        self._start = self._now()

    def lap(self, what: str) -> None:
        """Seconds since the last lap, to the list `what`."""
        now = self._now()
        if self._record:
            self._record[what].append(now - self._start)
        self._start = now

    def stop(self, out_rows: int) -> None:
        self.lap("time")
        if self._record:
            self._record["num_points"].append(self._rows)
            self._record["num_out_points"].append(out_rows)

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()
