"""Stands in for libraries that the driving benchmark measures and that are not here: packages of their names, written
into a folder. FlexGEMM's computes by torch; those of the others are Pumice's layers in other clothes."""

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
    """y[p] = sum over offsets of x[p + offset - 1] W[offset]. Each p has a number; those of x are sorted and searched."""
    assert weight.shape[1:4] == (3, 3, 3)
    sites = coords.long()

    def number(cells):   # in a grid with a margin of one cell, where neighbours outside of it lie
        numbers = cells[:, 0]
        for axis, size in enumerate(shape[2:], 1):
            numbers = numbers * (size + 2) + cells[:, axis] + 1
        return numbers

    numbers, order = number(sites).sort()
    y = features.new_zeros((len(sites), len(weight)), dtype=torch.float32)
    for offset in torch.cartesian_prod(*[torch.arange(3)] * 3).tolist():
        wanted = number(sites + sites.new_tensor([0, *offset]) - sites.new_tensor([0, 1, 1, 1]))
        places = torch.searchsorted(numbers, wanted).clamp(max=len(numbers) - 1)
        (outputs,) = torch.where(numbers[places] == wanted)
        x = features[order[places[outputs]]].float()
        y = y.index_add(0, outputs, x @ weight[(slice(None), *offset)].float().T)
    y = (y if bias is None else y + bias).to(features.dtype)
    return y, "map"
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
