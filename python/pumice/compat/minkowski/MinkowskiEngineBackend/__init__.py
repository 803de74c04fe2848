"""The name of MinkowskiEngine's extension: what code in Python takes from it."""

from . import _C
