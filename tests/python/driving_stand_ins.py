"""Stands in for libraries that the driving benchmark measures and that are not here: packages of their names, written
into a folder. FlexGEMM's computes densely, by torch; those of the others are Pumice's layers in other clothes."""

from __future__ import annotations

import pathlib

SPCONV_TRITON = '''
import sys
import types
import pumice.compat.spconv as spconv

__version__ = "stand-in"
pytorch = types.ModuleType("spconv_triton.pytorch")
for name in ("SubMConv3d", "SparseConv3d", "SparseInverseConv3d", "SparseConvTensor"):
    setattr(pytorch, name, getattr(spconv, name))
sys.modules["spconv_triton.pytorch"] = pytorch
'''
FLEX_GEMM = '''
import torch


def sparse_submanifold_conv3d(features, coords, shape, weight, bias, cache=None):
    """y[p] = sum over offsets of x[p + offset - 1] W[offset], on a dense grid."""
    index = tuple(coords.long().unbind(1))
    dense = features.new_zeros((shape[0], *shape[2:], features.shape[1])).index_put(index, features)
    y = torch.nn.functional.conv3d(dense.movedim(-1, 1), weight.movedim(-1, 1), bias, padding=1)
    return y.movedim(1, -1)[index], "map"
'''
WARPCONVNET = '''
import torch
import pumice


class Voxels:
    def __init__(self, batched_coordinates, batched_features, offsets):
        counts = offsets.long().diff()
        items = torch.arange(len(counts)).repeat_interleave(counts)
        cells = torch.cat([items[:, None], batched_coordinates], 1).int()
        self.x = pumice.SparseTensor(cells, batched_features, batch_size=len(counts))

    @property
    def feature_tensor(self):
        return self.x.features

    def replace(self, batched_features):
        y = object.__new__(Voxels)
        y.x = self.x.replace(features=batched_features)
        return y


class SparseConv3d(torch.nn.Module):
    def __init__(self, inputs, outputs, kernel_size, stride=1, transposed=False, bias=True):
        super().__init__()
        if transposed:
            self.layer = pumice.nn.InverseConv3d(inputs, outputs, kernel_size, stride=stride, bias=bias)
        elif max(stride) == 1:
            self.layer = pumice.nn.SubMConv3d(inputs, outputs, kernel_size, bias=bias)
        else:
            self.layer = pumice.nn.Conv3d(inputs, outputs, kernel_size, stride=stride, bias=bias, outputs="cell")
        self.weight = self.layer.weight

    def forward(self, x, like=None):
        y = object.__new__(Voxels)
        y.x = self.layer(x.x) if like is None else self.layer(x.x, like.x)
        return y
'''


def write(folder: pathlib.Path) -> None:
    """Makes the packages below `folder`, which is then searched."""
    files = {
        "spconv_triton/__init__.py": SPCONV_TRITON,
        "flex_gemm/__init__.py": "",
        "flex_gemm/kernels/__init__.py": "",
        "flex_gemm/kernels/triton/__init__.py": "",
        "flex_gemm/kernels/triton/spconv/__init__.py": "",
        "flex_gemm/kernels/triton/spconv/config.py": "allow_tf32 = True\n",
        "flex_gemm/ops/__init__.py": "",
        "flex_gemm/ops/spconv.py": FLEX_GEMM,
        "warpconvnet/__init__.py": "",
        "warpconvnet/geometry/__init__.py": "",
        "warpconvnet/geometry/types/__init__.py": "",
        "warpconvnet/geometry/types/voxels.py": WARPCONVNET,
        "warpconvnet/nn/__init__.py": "",
        "warpconvnet/nn/modules/__init__.py": "",
        "warpconvnet/nn/modules/sparse_conv.py": "from warpconvnet.geometry.types.voxels import SparseConv3d\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
