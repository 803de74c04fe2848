"""The release whose interface this is."""

__version__ = "2.1.0"
