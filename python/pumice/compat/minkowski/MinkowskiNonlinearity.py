"""The name under which MinkowskiEngine keeps its activations and dropout."""

from . import layers
from .layers import *  # noqa: F403
from .layers import MinkowskiNonlinearityBase

_ELSEWHERE = ("Norm", "Linear")
__all__ = [
    *(name for name in layers.__all__ if not name.endswith(_ELSEWHERE)), "MinkowskiNonlinearityBase",
]
