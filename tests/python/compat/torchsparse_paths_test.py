"""Modules and names of TorchSparse 2.1, as its release lists them."""

from __future__ import annotations

import importlib

import pytest
from programs import run, shim

MODULES = """
backbones backbones.modules backbones.modules.blocks backbones.resnet backbones.unet backend backends nn
nn.functional nn.functional.activation nn.functional.conv nn.functional.conv.conv
nn.functional.conv.conv_config nn.functional.conv.conv_mode nn.functional.conv.func
nn.functional.conv.func.fetch_on_demand nn.functional.conv.func.gather_scatter
nn.functional.conv.func.implicit_gemm nn.functional.conv.hash nn.functional.conv.hash.hash
nn.functional.conv.hash.query nn.functional.conv.kmap nn.functional.conv.kmap.build_kmap
nn.functional.conv.kmap.downsample nn.functional.conv.kmap.func nn.functional.conv.kmap.func.hashmap
nn.functional.conv.kmap.func.hashmap_on_the_fly nn.functional.conv.kmap.upsample
nn.functional.conv.utils nn.functional.conv.utils.collections nn.functional.conv.utils.compat
nn.functional.count nn.functional.crop nn.functional.devoxelize nn.functional.hash
nn.functional.pooling nn.functional.query nn.functional.voxelize nn.modules nn.modules.activation
nn.modules.bev nn.modules.conv nn.modules.crop nn.modules.norm nn.modules.pooling nn.utils
nn.utils.apply nn.utils.kernel operators tensor utils utils.collate utils.quantize
utils.tensor_cache utils.to_dense utils.tune utils.utils version
""".split()

NAMES = {
    "": "SparseTensor backends cat generative_add tune __version__",
    "backbones": "SparseResNet21D SparseResUNet42",
    "backbones.modules": "SparseConvBlock SparseConvTransposeBlock SparseResBlock",
    "backend": "GPUHashTable GPUHashTable32 count_cpu devoxelize_forward_cuda hash_cuda hash_query_cpu "
    "kernel_hash_cpu to_dense_forward_cuda voxelize_backward_cpu",
    "nn": "BatchNorm Conv3d GlobalAvgPool GlobalMaxPool GroupNorm InstanceNorm LeakyReLU ReLU SiLU "
    "SparseCrop ToBEVConvolution ToBEVHeightCompression ToBEVReduction ToDenseBEVConvolution functional",
    "nn.functional": "ConvMode Dataflow build_kernel_map calc_ti_weights conv3d conv_config conv_mode "
    "convert_transposed_out_in_map get_conv_mode get_downsample_mode get_kmap_mode global_avg_pool "
    "global_max_pool leaky_relu relu set_conv_mode set_downsample_mode set_kmap_mode silu spcount "
    "spcrop spdevoxelize spdownsample sphash sphashquery spupsample_generative spvoxelize "
    "transpose_kernel_map",
    "nn.functional.conv.conv_config": "Dataflow clear_global_conv_config get_default_conv_config "
    "get_global_conv_config set_global_conv_config",
    "nn.functional.conv.func": "FetchOnDemandConvolutionFuntion GatherScatterConvolutionFuntion "
    "ImplicitGEMMConvolutionFuntion",
    "nn.functional.conv.utils.collections": "AttributeDict",
    "nn.utils": "fapply get_kernel_offsets",
    "tensor": "PointTensor SparseTensor get_allow_negative_coordinates set_allow_negative_coordinates",
    "utils": "make_divisible make_ntuple make_tensor to_dense",
    "utils.collate": "sparse_collate sparse_collate_fn",
    "utils.quantize": "ravel_hash sparse_quantize",
    "utils.tensor_cache": "TensorCache TensorCacheMode clear_global_tensor_cache get_global_tensor_cache "
    "get_tensor_cache_mode set_global_tensor_cache set_tensor_cache_mode",
}


@pytest.mark.parametrize("module", NAMES)
def test_names(module: str) -> None:
    found = importlib.import_module(".".join(["pumice.compat.torchsparse", *filter(None, [module])]))
    assert [name for name in NAMES[module].split() if not hasattr(found, name)] == []


IMPORTS = "\n".join(f"import torchsparse.{module}" for module in MODULES)
SAME = """
import torchsparse
from torchsparse.nn.functional.devoxelize import calc_ti_weights
from torchsparse.utils.tensor_cache import TensorCache
from torchsparse.utils import *
import torchsparse.nn.functional as F
import pumice.compat.torchsparse.backend
assert make_ntuple(2, 3) == (2, 2, 2) and F.calc_ti_weights is calc_ti_weights
assert torchsparse.backend.GPUHashTable is pumice.compat.torchsparse.backend.GPUHashTable
assert F.conv_config.get_default_conv_config().kmap_mode == "hashmap_on_the_fly"
assert type(torchsparse.SparseTensor.__init__) and callable(torchsparse.tune)
"""


@pytest.mark.parametrize("way", ["install", "shim"])
def test_every_module_of_the_release_imports(way: str) -> None:
    assert len(MODULES) == 58
    if way == "install":
        done = run(f"import pumice.compat\npumice.compat.install('torchsparse')\n{IMPORTS}{SAME}")
    else:
        done = run(IMPORTS + SAME, shim("torchsparse"))
    assert done.returncode == 0, done.stderr
