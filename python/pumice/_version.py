"""The version of the package, as it was installed."""

import importlib.metadata

__version__ = importlib.metadata.version("pumice")
