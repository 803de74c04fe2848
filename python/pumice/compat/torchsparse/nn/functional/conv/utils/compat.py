"""What Python 2 and 3 name differently, as TorchSparse lists it."""

from __future__ import annotations

import sys

PY2, PY3, PY34 = False, True, sys.version_info >= (3, 4)
string_types, integer_types, class_types = (str,), (int,), (type,)
text_type, binary_type = str, bytes
