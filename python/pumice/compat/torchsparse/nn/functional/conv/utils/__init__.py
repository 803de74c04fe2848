"""Helpers of configurations."""

from . import collections, compat
from .collections import AttributeDict, attrdict, attributedict

__all__ = ["AttributeDict", "attrdict", "attributedict"]
