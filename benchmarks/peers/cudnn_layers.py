"""The layers of graph_layers.py with cuDNN's aggregation in place of PyG's: `cudnn.gnn` of nvidia-cudnn-frontend, on a GPU."""

import copy

import torch


def why_not():
    """A sentence where cudnn.gnn cannot be used, else nothing."""
    try:
        import cudnn
        import cudnn.gnn  # noqa: F401
    except ImportError as error:
        return f"cudnn.gnn is not there ({error}): pip install nvidia-cudnn-frontend nvidia-cudnn-cu13"
    try:
        loop = torch.zeros(2, 1, dtype=torch.int64, device="cuda")
        Graph(loop, 1).aggregate("sum", torch.ones(1, 4, device="cuda"))
    except RuntimeError as error:   # PyTorch has loaded a cuDNN before 9.28, which has no such functions
        return f"cudnn.gnn cannot be used ({error}): load the libcudnn.so.9 of nvidia-cudnn-cu13 first, with LD_PRELOAD"
    return None


class Graph:
    """Edges by target, as cuDNN takes them, and what it does with rows of features."""

    def __init__(self, edge_index, nodes):
        from cudnn.gnn import CscGraph

        source, target = edge_index
        order = target.argsort(stable=True)
        begin = torch.zeros(nodes + 1, dtype=torch.int32, device=target.device)
        begin[1:] = torch.bincount(target, minlength=nodes).cumsum(0)
        self.edges = CscGraph(begin, source[order].int(), nodes)
        self.scale = begin.diff().clamp(min=1).float().rsqrt()[:, None]

    def aggregate(self, reduce, x):
        from cudnn.gnn import agg_simple

        return agg_simple(self.edges, node_features=x, aggr=reduce)


def with_loops(edge_index, nodes):
    """One of each node, as PyG's attention and GCN have them."""
    own = torch.arange(nodes, device=edge_index.device)
    return torch.cat([edge_index[:, edge_index[0] != edge_index[1]], torch.stack([own, own])], 1)


class Net(torch.nn.Module):
    """The layers of a network of PyG's, whose weights it copies."""

    def __init__(self, kind, layers, edge_index, nodes):
        super().__init__()
        self.kind = kind
        self.layers = torch.nn.ModuleList(copy.deepcopy(layer) for layer in layers)
        looped = kind.startswith("GAT") or kind == "GCN"
        self.graph = Graph(with_loops(edge_index, nodes) if looped else edge_index, nodes)

    def aggregate(self, reduce, x):
        return self.graph.aggregate(reduce, x)

    def layer(self, layer, x):
        if self.kind == "GCN":
            return self.aggregate("sum", layer.lin(x) * self.graph.scale) * self.graph.scale + layer.bias
        if self.kind.startswith("SAGE"):
            return layer.lin_l(self.aggregate("max" if "max" in self.kind else "mean", x)) + layer.lin_r(x)
        if self.kind == "GIN":
            return layer.nn(self.aggregate("sum", x) + x)
        from cudnn.gnn import mha_gat, mha_gat_v2

        if self.kind.startswith("GATv2"):
            both = layer.lin_l(x), layer.lin_r(x)
            return mha_gat_v2(self.graph.edges, both, layer.att.flatten(), num_heads=layer.heads) + layer.bias
        weights = torch.cat([layer.att_src.flatten(), layer.att_dst.flatten()])
        return mha_gat(self.graph.edges, layer.lin(x), weights, num_heads=layer.heads) + layer.bias

    def forward(self, x, edge_index):   # of the edges that it was made of
        for place, layer in enumerate(self.layers):
            x = self.layer(layer, x if place == 0 else x.relu())
        return x
