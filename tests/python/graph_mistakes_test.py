"""What layers and operators of graphs cannot take is said in one sentence."""

import pytest
import torch

import pumice
from pumice import nn, ops
from sparse_products_test import edges
from typed_graph_layers_test import HETERO, of_types


MISTAKES = {
    "x of one axis": (lambda: nn.graph.GCNConv(6, 5)(torch.randn(6), edges(7, 7, 5)), r"x has shape \(6,\)"),
    "x of three parts": (
        lambda: nn.graph.GINConv(torch.nn.Linear(6, 5))([torch.randn(7, 6)] * 3, edges(7, 7, 5)),
        "x has 3 parts: give features, or a pair",
    ),
    "no x": (lambda: nn.graph.GATConv(6, 5)(None, edges(7, 7, 5)), "x is None"),
    "edges of other nodes": (
        lambda: nn.graph.GCNConv(6, 5)(torch.randn(7, 6), pumice.Graph(edges(7, 7, 5), 8)),
        "the graph has 8 sources and 8 targets, and x 7 and 7 rows",
    ),
    "edges that lead nowhere": (
        lambda: nn.graph.SAGEConv(6, 5)(torch.randn(2, 6), torch.tensor([[0, 5], [1, 0]])),
        "= 5 where there are 2",
    ),
    "too few weights": (
        lambda: nn.graph.GCNConv(6, 5)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(4)),
        r"edge_weight has shape \(4,\): give \[5\]",
    ),
    "a sparse matrix and types": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), torch.eye(7).to_sparse(), torch.zeros(7).long()),
        r"layout torch.sparse_coo: .*whose graph.edge_index goes with edge_type",
    ),
    "relations that there are not": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5), torch.full((5,), 2)),
        r"edge_type\[0\] = 2 where there are 2",
    ),
    "no relations": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5)),
        "edge_type is None",
    ),
    "too few relations": (
        lambda: nn.graph.RGCNConv(6, 4, 2)(torch.randn(7, 6), edges(7, 7, 5), torch.zeros(4, dtype=torch.int64)),
        r"give int64 \[5\]",
    ),
    "bases and blocks": (lambda: nn.graph.RGCNConv(6, 4, 2, num_bases=2, num_blocks=2), "give one of them"),
    "blocks that do not divide": (lambda: nn.graph.RGCNConv(6, 4, 2, num_blocks=4), "4 blocks of 6 and 4 channels"),
    "features of other types": (
        lambda: ops.typed_linear(torch.randn(3, 4), torch.randn(2, 4, 5), pumice.TypedRows([0, 1, 2])),
        "features has 3 rows, and 2 rows have types",
    ),
    "bounds that descend": (lambda: pumice.TypedRows([0, 3, 2]), r"begin\[2\] = 2 after 3"),
    "another aggregation": (lambda: nn.graph.SAGEConv(6, 5, aggr="median"), "aggr = 'median'"),
    "an LSTM": (lambda: nn.graph.SAGEConv(6, 5, aggr="lstm"), "aggr = 'lstm': choose mean, .*one after the other"),
    "several aggregations": (lambda: nn.graph.SAGEConv(6, 5, aggr=["mean", "max"]), "aggr is a list: .*torch.cat"),
    "a module that aggregates": (lambda: nn.graph.SAGEConv(6, 5, aggr=torch.nn.ReLU()), "aggr is a ReLU: .*ops.spmm"),
    "no channels": (lambda: nn.graph.GCNConv(0, 5), "in_channels = 0"),
    "another filling": (lambda: nn.graph.GATConv(6, 5, edge_dim=2, fill_value="mul"), "fill_value = 'mul'"),
    "features of edges of another width": (
        lambda: nn.graph.GATv2Conv(6, 5, edge_dim=2)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(5, 3)),
        r"edge_attr has shape \(5, 3\): give \[5, 2\]",
    ),
    "features of edges that nobody takes": (
        lambda: nn.graph.GATConv(6, 5)(torch.randn(7, 6), edges(7, 7, 5), torch.ones(5, 3)),
        "edge_attr is given to a layer without edge_dim",
    ),
    "no features of targets": (
        lambda: nn.graph.GATv2Conv((6, 6), 5)((torch.randn(7, 6), None), edges(7, 7, 5)),
        "features of targets are None",
    ),
    "shared weights of other widths": (
        lambda: nn.graph.GATv2Conv((6, 4), 5, share_weights=True),
        "6 channels of sources and 4 of targets",
    ),
    "a modulation": (lambda: nn.graph.RGATConv(6, 4, 2, mod="scaled"), "mod = 'scaled'"),
    "another attention": (
        lambda: nn.graph.RGATConv(6, 4, 2, attention_mode="multiplicative-self-attention"),
        "attention_mode = 'multiplicative-self-attention': choose additive-self-attention",
    ),
    "types of other rows": (
        lambda: nn.graph.HeteroLinear(6, 4, 2)(torch.randn(7, 6), torch.zeros(5).long()),
        r"type_vec is torch.int64, \(5,\): give int64 \[7\]",
    ),
    "edges of an unknown type": (
        lambda: nn.graph.HGTConv(6, 4, HETERO)(of_types()[0], {("paper", "is", "paper"): edges(9, 9, 5)}),
        "edge_index_dict has .'paper', 'is', 'paper'.: there are edges of",
    ),
    "edges that lead to another type": (
        lambda: nn.graph.HGTConv(6, 4, HETERO)(of_types()[0], {HETERO[1][2]: torch.tensor([[0], [7]])}),
        r"edge_index_dict\[\(.paper., .written by., .author.\)\]\[1\]\[0\] = 7 where there are 5: give numbers from 0 on",
    ),
    "types of no nodes": (lambda: nn.graph.HGTConv(6, 4, (["a"], [("a", "to", "b")])), r"metadata\[1\] has .'a', 'to', 'b'."),
    "heads that do not divide": (lambda: nn.graph.HGTConv(6, 4, HETERO, heads=3), "3 heads of 4 channels"),
    "heads as text": (lambda: nn.graph.GATConv(6, 5, heads="2"), "heads"),
    "a sparse matrix": (
        lambda: nn.graph.SAGEConv(6, 5)(torch.randn(7, 6), torch.eye(7).to_sparse()),
        r"layout torch.sparse_coo: graph, values = pumice.Graph.of",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_get_a_sentence(name):
    call, said = MISTAKES[name]
    with pytest.raises(pumice.UserError, match=said):
        call()
