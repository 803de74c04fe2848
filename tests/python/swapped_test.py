"""Every argument of every operator and method, replaced by something else: a sentence of Pumice's own, or a result that
makes sense. An AttributeError of Python or an error of PyTorch says nothing of what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from mistake_cases import CELLS, ROWS

import pumice
from pumice import nn, ops

POINTS = torch.tensor([[0, 1.0, 2.0, 3.5]])
WEIGHT = torch.ones(27, 4, 8)
FOLD = torch.ones(8)


def tensor() -> pumice.SparseTensor:
    return pumice.SparseTensor(CELLS, ROWS.clone())


X = tensor()
OTHER = pumice.SparseTensor(CELLS[:1], ROWS[:1])
LAYER = nn.SubMConv3d(4, 8, 3)
STRIDED = nn.Conv3d(4, 8, 2, stride=2)
MAP = ops.submanifold_map(X.coords, LAYER.window)
DOWN, COARSE = ops.strided_map(X.coords, STRIDED.window, cell=True)
VOXELS = pumice.voxelize(torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.2, 0.3]]), size=1.0)
FOUND = ops.interpolation_map(X.coords, POINTS)

EDGES = torch.tensor([[0, 1, 1], [1, 1, 0]])
GRAPH = pumice.Graph(EDGES, 2)
TYPED = pumice.TypedGraph(EDGES, torch.tensor([0, 1, 1]), 2, 2)

# What stands in the place of each argument, by what it is called in a failure.
WRONG: dict[str, Any] = {
    "None": None,
    "3": 3,
    "'x'": "x",
    "a dense tensor": torch.ones(2, 4),
    "a tensor of three axes": torch.ones(2, 4, 3),
    "a number in a tensor": torch.tensor(1.5),
    "a sparse tensor": X,
    "a list": ["x"],
    "sites": X.coords,
    "a map": MAP,
    "a window": LAYER.window,
    "a layer": LAYER,
    "a NumPy array": torch.ones(2, 4).numpy(),
}

# The functions of pumice.ops with arguments that they take.
OPS: dict[str, dict[str, Any]] = {
    "batch_norm": {
        "features": ROWS, "weight": torch.ones(4), "bias": torch.zeros(4), "running_mean": torch.zeros(4),
        "running_variance": torch.ones(4), "training": True, "momentum": 0.1, "eps": 1e-5, "residual": ROWS, "relu": True,
        "batches": torch.tensor(0), "count": X.coords,
    },
    "clear_tail": {"features": ROWS, "count": X.coords},
    "candidates": {"features": ROWS, "weight": WEIGHT, "map": MAP, "direction": "forward", "groups": 1,
                   "deterministic": None, "tf32": None},
    "convolution": {"features": ROWS, "weight": WEIGHT, "map": MAP, "bias": FOLD, "groups": 1, "kept": None,
                    "dataflow": None, "plan": None},
    "convolution_input_gradient": {"grad_output": torch.ones(2, 8), "weight": WEIGHT, "map": MAP, "groups": 1,
                                   "dataflow": None, "plan": None},
    "convolution_weight_gradient": {"features": ROWS, "grad_output": torch.ones(2, 8), "map": MAP, "groups": 1,
                                    "plan": None},
    "finer_sites": {"coords": COARSE, "window": STRIDED.window},
    "fold_batch_norm": {"mean": torch.zeros(8), "variance": FOLD, "weight": FOLD, "bias": FOLD, "added_before": FOLD,
                        "eps": 1e-5},
    "from_dense": {"dense": torch.ones(1, 2, 3, 4), "mask": torch.ones(1, 3, 4, dtype=torch.bool)},
    "fused_convolution": {"features": ROWS, "weight": WEIGHT, "map": MAP, "scale": FOLD, "shift": FOLD,
                          "residual": torch.ones(2, 8), "relu": True, "groups": 1, "kept": None, "plan": None},
    "generative_map": {"coords": COARSE, "window": STRIDED.window},
    "global_pool": {"features": ROWS, "coords": X.coords, "kind": "max"},
    "interpolate": {"features": ROWS, "coords": X.coords, "points": POINTS, "nearest": False, "renormalize": False},
    "interpolation_map": {"coords": X.coords, "points": POINTS, "nearest": False, "renormalize": False},
    "inverse_map": {"coords": COARSE, "window": STRIDED.window, "fine": X.coords},
    "plan_of": {"features": ROWS, "weight": WEIGHT, "map": MAP, "direction": "forward", "groups": 1,
                "deterministic": None, "tf32": None},
    "pool": {"features": ROWS, "map": DOWN, "kind": "sum"},
    "edge_scores": {"graph": GRAPH, "target": ROWS, "source": ROWS, "attention": torch.ones(4), "entry": torch.ones(3, 4),
                    "negative_slope": 0.2},
    "edge_softmax": {"graph": GRAPH, "scores": torch.ones(3, 2), "target": torch.ones(2, 2), "source": torch.ones(2, 2),
                     "negative_slope": 0.2},
    "rgms": {"graph": TYPED, "features": ROWS, "weight": torch.ones(2, 4, 3), "edge_weight": torch.ones(3),
             "reduce": "sum"},
    "sddmm": {"graph": GRAPH, "left": ROWS, "right": ROWS},
    "spmm": {"graph": GRAPH, "features": ROWS, "values": torch.ones(3), "reduce": "sum"},
    "typed_linear": {"features": ROWS, "weight": torch.ones(1, 4, 3), "types": pumice.TypedRows([0, 2])},
    "prune": {"x": X, "keep": torch.tensor([True, False])},
    "reduce_rows": {"features": ROWS, "row_of": torch.tensor([0, 0]), "rows": 1, "reduction": "mean"},
    "strided_map": {"coords": X.coords, "window": STRIDED.window, "cell": True},
    "submanifold_map": {"coords": X.coords, "window": LAYER.window},
    "take_rows": {"features": ROWS, "rows": torch.tensor([1, -1])},
    "to_bev": {"features": ROWS, "coords": X.coords, "axis": -1, "shape": [8, 8, 8], "low": [0, 0, 0], "crop": False},
    "to_dense": {"features": ROWS, "coords": X.coords, "shape": [8, 8, 8], "low": [0, 0, 0], "crop": False},
    "transposed_map": {"coords": COARSE, "fine": X.coords, "window": STRIDED.window},
    "union_add": {"left": X, "right": OTHER},
}  # fmt: skip

# Methods and constructors that take objects.
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "SparseTensor": (pumice.SparseTensor, {"coords": CELLS, "features": ROWS, "spatial_shape": [9, 9, 9],
                                           "batch_size": 1, "stride": [1, 1, 1]}),
    "SparseTensor of sites": (pumice.SparseTensor, {"coords": X.coords, "features": ROWS}),
    "SparseTensor.replace": (X.replace, {"features": ROWS}),
    "SparseTensor.dense": (X.dense, {"shape": [8, 8, 8], "low": [0, 0, 0], "crop": False}),
    "SparseTensor.from_dense": (pumice.SparseTensor.from_dense, {"dense": torch.ones(1, 2, 3, 4),
                                                                 "mask": torch.ones(1, 3, 4, dtype=torch.bool)}),
    "SparseTensor.to": (lambda device: X.to(device), {"device": "cpu"}),
    "SparseTensor.requires_grad_": (lambda requires_grad: tensor().requires_grad_(requires_grad), {"requires_grad": True}),
    "SparseTensor.__getitem__": (lambda mask: X[mask], {"mask": torch.tensor([True, False])}),
    "SparseTensor.__add__": (lambda other: X + other, {"other": X}),
    "SparseTensor.__sub__": (lambda other: X - other, {"other": X}),
    "SparseTensor.__mul__": (lambda other: X * other, {"other": X}),
    "SparseTensor.__truediv__": (lambda other: X / other, {"other": X}),
    "SparseTensor.__pow__": (lambda exponent: X**exponent, {"exponent": 2}),
    "Coordinates": (pumice.Coordinates, {"indices": CELLS, "spatial_shape": [9, 9, 9], "batch_size": 1,
                                         "stride": [1, 1, 1]}),
    "Coordinates.unique": (pumice.Coordinates.unique, {"indices": CELLS, "spatial_shape": [9, 9, 9], "batch_size": 1,
                                                       "stride": [1, 1, 1]}),
    "Coordinates.is_same": (X.coords.is_same, {"other": X.coords}),
    "Coordinates.to": (X.coords.to, {"device": "cpu"}),
    "Map.is_same": (MAP.is_same, {"other": MAP}),
    "TensorVoxels.at_points": (VOXELS.at_points, {"features": VOXELS.features}),
    "interpolate with a map": (ops.interpolate, {"features": ROWS, "coords": FOUND}),
    "cat": (pumice.cat, {"tensors": [X, X]}),
    "cat, one": (lambda x: pumice.cat([X, x]), {"x": X}),
    "collate": (pumice.collate, {"tensors": [X, X]}),
    "collate, one": (lambda x: pumice.collate([X, x]), {"x": X}),
    "layer": (LAYER, {"x": X}),
    "layer.find": (LAYER.find, {"x": X, "like": None}),
    "strided.find": (STRIDED.find, {"x": X, "like": None}),
    "inverse.find": (nn.InverseConv3d(8, 4, 2, stride=2).find, {"x": pumice.SparseTensor(COARSE, torch.ones(len(COARSE), 8)),
                                                                 "like": X}),
    "transposed.find": (nn.ConvTranspose3d(8, 4, 2, stride=2).find, {"x": pumice.SparseTensor(COARSE, torch.ones(len(COARSE), 8)),
                                                                     "like": X}),
    "generative.find": (nn.GenerativeConvTranspose3d(8, 4, 2, stride=2).find, {"x": X, "like": None}),
    "Graph": (pumice.Graph, {"edge_index": EDGES, "num_nodes": 2}),
    "Graph.of": (pumice.Graph.of, {"matrix": torch.eye(2).to_sparse()}),
    "TypedGraph": (pumice.TypedGraph, {"edge_index": EDGES, "edge_type": torch.tensor([0, 1, 1]), "num_nodes": 2,
                                       "num_relations": 2}),
    "TypedRows": (pumice.TypedRows, {"begin": [0, 2], "device": "cpu"}),
    "GCNConv": (nn.graph.GCNConv(4, 3), {"x": ROWS, "edge_index": EDGES, "edge_weight": torch.ones(3)}),
    "SAGEConv": (nn.graph.SAGEConv(4, 3), {"x": ROWS, "edge_index": EDGES}),
    "GINConv": (nn.graph.GINConv(torch.nn.Linear(4, 3)), {"x": ROWS, "edge_index": EDGES}),
    "GATConv": (nn.graph.GATConv(4, 3, edge_dim=2), {"x": ROWS, "edge_index": EDGES, "edge_attr": torch.ones(3, 2)}),
    "GATv2Conv": (nn.graph.GATv2Conv(4, 3, edge_dim=2), {"x": ROWS, "edge_index": EDGES, "edge_attr": torch.ones(3, 2)}),
    "RGATConv": (nn.graph.RGATConv(4, 3, 2, edge_dim=2), {"x": ROWS, "edge_index": EDGES,
                                                          "edge_type": torch.tensor([0, 1, 1]), "edge_attr": torch.ones(3, 2)}),
    "HGTConv": (nn.graph.HGTConv(4, 4, (["a"], [("a", "to", "a")])), {"x_dict": {"a": ROWS},
                                                                     "edge_index_dict": {("a", "to", "a"): EDGES}}),
    "HeteroLinear": (nn.graph.HeteroLinear(4, 3, 2), {"x": ROWS, "type_vec": torch.tensor([0, 1])}),
    "RGCN": (nn.graph.RGCN(4, (3, 2), 2), {"x": ROWS, "edge_index": EDGES, "edge_type": torch.tensor([0, 1, 1])}),
    "RGCNConv": (nn.graph.RGCNConv(4, 3, 2), {"x": ROWS, "edge_index": EDGES, "edge_type": torch.tensor([0, 1, 1])}),
    "voxelize": (pumice.voxelize, {"points": torch.rand(5, 3), "features": torch.rand(5, 2), "size": 0.5,
                                   "range": [0, 0, 0, 1, 1, 1], "reduction": "mean", "batch": torch.zeros(5).int(),
                                   "batch_size": 1, "spatial_shape": [2, 2, 2]}),
}  # fmt: skip


def all_calls() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    return {**{name: (getattr(ops, name), given) for name, given in OPS.items()}, **METHODS}


CALLS = all_calls()


def test_every_operator_is_here_with_all_of_its_arguments() -> None:
    functions = {name for name in ops.__all__ if inspect.isfunction(getattr(ops, name))}
    assert set(OPS) == functions
    for name, given in OPS.items():
        assert list(given) == list(inspect.signature(getattr(ops, name)).parameters), name


@pytest.mark.parametrize("name", CALLS)
def test_what_is_right_is_taken(name: str) -> None:
    call, given = CALLS[name]
    call(**given)


def swapped(given: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for argument in given:
        for what, wrong in WRONG.items():
            if argument == "device" and what == "3":
                continue  # a GPU, of which PyTorch says whether it is there
            yield f"{argument} = {what}", {**given, argument: wrong}


def outcome(call: Callable[..., Any], given: dict[str, Any]) -> str:
    """"" where it is refused in a sentence; "taken"; or what was raised instead."""
    try:
        call(**given)
    except pumice.UserError:
        return ""
    except Exception as error:  # noqa: BLE001  (which one it is, is what is asked)
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120] if str(error) else ''}"
    return "taken"


# What in WRONG is right in the place of an argument: of another kind, but with a meaning there.
_ROWS, _NUMBER, _NONE = "a dense tensor", "a number in a tensor", "None"
_ANY = {"features": {_ROWS}, "map": {"a map"}, "coords": {"sites"}, "window": {"a window"}, "like": {"a sparse tensor", "sites"}}
_FIT: dict[str, dict[str, set[str]]] = {
    "batch_norm": {"eps": {"3", _NUMBER}, "residual": {_ROWS}, "batches": set(), "count": {_NONE, "sites", "a map"}},
    "clear_tail": {"features": {_ROWS, "a tensor of three axes"}, "count": {_NONE, "sites", "a map"}},
    "convolution_weight_gradient": {"grad_output": {_ROWS}},  # of four channels
    "fold_batch_norm": {"eps": {"3", _NUMBER}},
    "edge_scores": {"target": {_ROWS}, "source": {_ROWS}, "entry": {_NONE}, "negative_slope": {"3", _NUMBER}},
    "edge_softmax": {"scores": {_NONE}, "target": {_NONE, _ROWS}, "source": {_NONE, _ROWS}, "negative_slope": {"3", _NUMBER}},
    "rgms": {"graph": set(), "edge_weight": {_NONE}, "weight": {"a tensor of three axes"}},
    "sddmm": {"left": {_ROWS}, "right": {_ROWS}},
    "spmm": {"features": {_ROWS, "a tensor of three axes"}, "values": {_NONE}},
    "Graph": {"num_nodes": {_NONE, "3"}},
    "TypedGraph": {"num_nodes": {_NONE, "3"}, "num_relations": {_NONE, "3"}},
    "TypedRows": {"device": {_NONE}},
    "GCNConv": {"x": {_ROWS}, "edge_weight": {_NONE}},
    "SAGEConv": {"x": {_ROWS}},
    "GINConv": {"x": {_ROWS}},
    "GATConv": {"x": {_ROWS}, "edge_attr": {_NONE}},
    "GATv2Conv": {"x": {_ROWS}, "edge_attr": {_NONE}},
    "RGATConv": {"x": {_ROWS}, "edge_attr": {_NONE}},
    "HeteroLinear": {"x": {_ROWS}},
    "RGCN": {"x": {_ROWS, _NONE}},
    "RGCNConv": {"x": {_ROWS, _NONE}},
    "fused_convolution": {"scale": {_NONE}, "shift": {_NONE}},
    "inverse_map": {"fine": {"sites"}},
    "prune": {"x": {"a sparse tensor"}},
    "reduce_rows": {"rows": {"3"}},
    "transposed_map": {"fine": {"sites"}},
    "union_add": {"left": {"a sparse tensor"}, "right": {"a sparse tensor"}},
    "SparseTensor": {"batch_size": {"3"}},
    "SparseTensor.to": {"device": {_NONE, _ROWS, "a tensor of three axes", _NUMBER}},  # as torch.Tensor.to takes them
    "SparseTensor.__add__": {"other": {"a sparse tensor"}},
    "SparseTensor.__sub__": {"other": {"a sparse tensor"}},
    "SparseTensor.__mul__": {"other": {"3", _ROWS, _NUMBER, "a sparse tensor"}},
    "SparseTensor.__truediv__": {"other": {"3", _ROWS, _NUMBER, "a sparse tensor"}},
    "SparseTensor.__pow__": {"exponent": {"3", _NUMBER}},
    "Coordinates": {"batch_size": {"3"}},
    "Coordinates.unique": {"batch_size": {"3"}},
    "Coordinates.is_same": {"other": {"sites"}},
    "Map.is_same": {"other": {"a map"}},
    "cat, one": {"x": {"a sparse tensor"}},
    "collate, one": {"x": {"a sparse tensor"}},
    "layer": {"x": {"a sparse tensor"}},
    "layer.find": {"x": {"a sparse tensor"}},
    "strided.find": {"x": {"a sparse tensor"}},
    "transposed.find": {"x": {"a sparse tensor"}},
    "generative.find": {"x": {"a sparse tensor"}},
    "voxelize": {"size": {"3", _NUMBER}, "batch_size": {"3"}},
}
# Arguments that may be left out, by being None.
_OPTIONAL = {
    "weight", "bias", "running_mean", "running_variance", "residual", "batches", "deterministic", "tf32", "kept", "dataflow",
    "plan", "added_before", "mask", "fine", "low", "shape", "spatial_shape", "batch_size", "stride", "like", "features", "range",
    "batch",
}  # fmt: skip


def may_be(name: str, argument: str) -> set[str]:
    optional = {_NONE} if argument in _OPTIONAL else set()
    return optional | _FIT.get(name, {}).get(argument, set()) | _ANY.get(argument, set())


@pytest.mark.parametrize("name", CALLS)
def test_what_is_taken_makes_sense(name: str) -> None:
    call, right = CALLS[name]
    for argument in right:
        for what, wrong in WRONG.items():
            if what not in may_be(name, argument) and (argument, what) != ("device", "3"):
                assert outcome(call, {**right, argument: wrong}) != "taken", f"{argument} = {what}"


@pytest.mark.parametrize("name", CALLS)
def test_what_is_wrong_gets_a_sentence(name: str) -> None:
    call, right = CALLS[name]
    found = {said: outcome(call, given) for said, given in swapped(right)}
    assert {said: text for said, text in found.items() if text not in ("", "taken")} == {}
