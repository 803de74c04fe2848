"""Shows a line on the terminal while kernels are compiled, which can happen in the first pass of a network."""

from __future__ import annotations

import sys
import threading
from typing import TextIO

_PAUSE_S = 0.5  # without another kernel, after which the line ends


class CompileProgress:
    """Shows how many kernels were compiled, in one line that grows; nothing where `stream` is no
    terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._kernels = 0
        self._seconds = 0.0
        self._end: threading.Timer | None = None

    def __call__(self, source: str, architecture: str, milliseconds: float) -> None:
        stream = sys.stderr if self._stream is None else self._stream
        if stream is None or not stream.isatty():
            return
        with self._lock:
            self._kernels += 1
            self._seconds += milliseconds / 1e3
            kernels = "1 kernel" if self._kernels == 1 else f"{self._kernels} kernels"
            stream.write(
                f"\rpumice: {kernels} compiled for {architecture} in "
                f"{self._seconds:.1f} s; they are kept for the next time"
            )
            stream.flush()
            if self._end is not None:
                self._end.cancel()
            self._end = threading.Timer(_PAUSE_S, self._finish, [stream])
            self._end.daemon = True
            self._end.start()

    def _finish(self, stream: TextIO) -> None:
        with self._lock:
            stream.write("\n")
            stream.flush()
            self._kernels = 0
            self._seconds = 0.0
            self._end = None
