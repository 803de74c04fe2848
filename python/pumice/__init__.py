"""Sparse tensors for deep learning: sparse convolution for point clouds, on CPU and GPU.

Points become voxels with NumPy alone::

    import pumice
    scan = pumice.simulate(seed=1)
    voxels = pumice.voxelize(scan.positions, scan.features(), size=0.1)

With PyTorch there are sparse tensors and layers::

    x = pumice.SparseTensor(coords, features)            # int32 [N, 1 + D], [N, C]
    y = pumice.nn.SubMConv3d(4, 32, 3)(x)
"""

from __future__ import annotations

import importlib as _importlib
import re as _re
from inspect import Parameter as _Parameter
from inspect import Signature as _Signature
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from . import view
from ._C import Error, InternalError, Plan, UserError
from ._version import __version__ as __version__
from .points import PointCloud, Voxels, read_labels, read_points, simulate, voxelize

# The exceptions of the extension have no docstrings of their own.
Error.__doc__ = "The base class of Pumice's errors, a RuntimeError; raised by itself where a device or a file fails."
UserError.__doc__ = """A wrong argument, a ValueError: says which, its value, and what to do.

    Example:
        >>> try:
        ...     pumice.simulate(beams=0)
        ... except pumice.UserError as error:
        ...     print(type(error).__module__)
        pumice
    """
# They are this package's names, and tracebacks and pickles say so.
for _kind in (Error, UserError, InternalError, Plan):
    _kind.__module__ = "pumice"
# Of a constructor in C++ Python does not know the arguments.
Plan.__signature__ = _Signature([_Parameter("text", _Parameter.POSITIONAL_OR_KEYWORD, annotation=str)])  # type: ignore[attr-defined]

# PyTorch puts the traceback of a loader's worker, of many lines, into the text of an error that it raises again. The
# extension shows an error as one line.
_shown = UserError.__str__


def _shown_in_lines(error: UserError) -> str:
    text = error.args[0] if len(error.args) == 1 else None
    if not isinstance(text, str) or not _re.match(r"Caught UserError in [^\n]*\.\nOriginal Traceback ", text):
        return _shown(error)
    return "\n".join(_shown(UserError(line)) for line in text.rstrip("\n").split("\n"))


UserError.__str__ = _shown_in_lines  # type: ignore[method-assign]

InternalError.__doc__ = "A mistake of Pumice's own, a RuntimeError: please report it."

if _TYPE_CHECKING:
    from . import compat, convert, data, formats, losses, metrics, models, nn, ops
    from .coords import Coordinates
    from .graph import Graph
    from .joining import cat, collate
    from .memory import release_memory
    from .planned import CapacityTensor, CompiledModel, CompiledStep, compile as compile, compile_step
    from .profiling import candidates, explain
    from .tensor import SparseTensor
    from .typed_graph import TypedGraph, TypedRows
    from .tuning import Tuning, load_plans, tune
    from .voxels import TensorVoxels, Voxelizer
    from .weights import load_weights, model_card, read_weights, save_weights

# Names that need PyTorch, and their modules. They are imported at first use, so that `import pumice` is quick and
# works without PyTorch.
_WITH_TORCH = {
    "data": "pumice.data",
    "losses": "pumice.losses",
    "metrics": "pumice.metrics",
    "compat": "pumice.compat",
    "convert": "pumice.convert",
    "formats": "pumice.formats",
    "models": "pumice.models",
    "nn": "pumice.nn",
    "ops": "pumice.ops",
    "Coordinates": "pumice.coords",
    "Graph": "pumice.graph",
    "SparseTensor": "pumice.tensor",
    "TensorVoxels": "pumice.voxels",
    "Voxelizer": "pumice.voxels",
    "TypedGraph": "pumice.typed_graph",
    "TypedRows": "pumice.typed_graph",
    "Tuning": "pumice.tuning",
    "CapacityTensor": "pumice.planned",
    "CompiledModel": "pumice.planned",
    "CompiledStep": "pumice.planned",
    "candidates": "pumice.profiling",
    "cat": "pumice.joining",
    "collate": "pumice.joining",
    "compile": "pumice.planned",
    "compile_step": "pumice.planned",
    "explain": "pumice.profiling",
    "load_plans": "pumice.tuning",
    "load_weights": "pumice.weights",
    "model_card": "pumice.weights",
    "read_weights": "pumice.weights",
    "release_memory": "pumice.memory",
    "save_weights": "pumice.weights",
    "tune": "pumice.tuning",
}

__all__ = [
    "CapacityTensor",
    "CompiledModel",
    "CompiledStep",
    "Coordinates",
    "Error",
    "Graph",
    "InternalError",
    "Plan",
    "PointCloud",
    "SparseTensor",
    "TensorVoxels",
    "Tuning",
    "TypedGraph",
    "TypedRows",
    "UserError",
    "Voxelizer",
    "Voxels",
    "candidates",
    "cat",
    "collate",
    "compat",
    "compile_step",
    "convert",
    "data",
    "explain",
    "load_plans",
    "load_weights",
    "losses",
    "metrics",
    "models",
    "nn",
    "ops",
    "read_labels",
    "read_points",
    "read_weights",
    "release_memory",
    "save_weights",
    "simulate",
    "tune",
    "view",
    "voxelize",
]


# Names of other libraries, and what to use here.
_NAMED_OTHERWISE = {
    "SparseConvTensor": "it is pumice.SparseTensor(coords, features); pumice.compat.spconv has spconv's",
    "TensorField": "points become voxels by pumice.voxelize; pumice.compat.minkowski has MinkowskiEngine's",
}


def __getattr__(name: str) -> _Any:
    if name not in _WITH_TORCH:
        remedy = _NAMED_OTHERWISE.get(name)
        raise AttributeError(
            f"module 'pumice' has no attribute {name!r}" + (f": {remedy}" if remedy else "")
        )
    try:
        module = _importlib.import_module(_WITH_TORCH[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(
            f"pumice.{name} needs PyTorch, which is not installed: pip install torch"
        ) from error
    value = module if _WITH_TORCH[name] == f"pumice.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
