"""Provides layers of graph networks. They take and return tensors of features, and edges as PyG has them or as a
`pumice.Graph`; parameters have the names that PyG's layers give them, so state dicts load by name."""

from ... import _needs_torch  # noqa: F401  (first, since it says what is missing)
from .gat import GATConv
from .gatv2 import GATv2Conv
from .gcn import GCNConv
from .gin import GINConv
from .hetero_linear import HeteroLinear
from .hgt import HGTConv
from .rgat import RGATConv
from .rgcn import RGCNConv
from .rgcn_network import RGCN
from .sage import SAGEConv

__all__ = ["GATConv", "GATv2Conv", "GCNConv", "GINConv", "HGTConv", "HeteroLinear", "RGATConv", "RGCN", "RGCNConv", "SAGEConv"]
