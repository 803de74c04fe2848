"""The version whose interface this is; code compares it."""

from __future__ import annotations

__version__ = "2.3.8"
SPCONV_VERSION_NUMBERS = [2, 3, 8]
