"""MinkowskiEngine's modules by all their names, and the small things in them."""

from __future__ import annotations

import importlib
import pathlib

import numpy as np
import pytest
import torch
from programs import run, run_unmodified, shim

import pumice
from pumice.compat import minkowski as ME

# Module: some names that code takes from it.
MODULES = {
    "MinkowskiBroadcast": "MinkowskiBroadcastFunction MinkowskiBroadcast MinkowskiBroadcastBase",
    "MinkowskiChannelwiseConvolution": "MinkowskiChannelwiseConvolution",
    "MinkowskiCommon": "MinkowskiModuleBase convert_to_int_list convert_to_int_tensor",
    "MinkowskiConvolution": "MinkowskiConvolutionBase MinkowskiGenerativeConvolutionTranspose",
    "MinkowskiCoordinateManager": "CoordinateManager set_gpu_allocator",
    "MinkowskiFunctional": "relu batch_norm soft_margin_loss",
    "MinkowskiInterpolation": "MinkowskiInterpolation MinkowskiInterpolationFunction",
    "MinkowskiKernelGenerator": "KernelGenerator KernelRegion save_ctx",
    "MinkowskiNetwork": "MinkowskiNetwork",
    "MinkowskiNonlinearity": "MinkowskiReLU MinkowskiDropout MinkowskiNonlinearityBase MinkowskiSinusoidal",
    "MinkowskiNormalization": "MinkowskiBatchNorm MinkowskiInstanceNormFunction",
    "MinkowskiOps": "MinkowskiLinear cat mean var _sum MinkowskiStackVar",
    "MinkowskiPooling": "MinkowskiAvgPooling MinkowskiPoolingBase MinkowskiDirectMaxPoolingFunction",
    "MinkowskiPruning": "MinkowskiPruning MinkowskiPruningFunction",
    "MinkowskiSparseTensor": "SparseTensor _get_coordinate_map_key",
    "MinkowskiTensor": "SparseTensorQuantizationMode set_sparse_tensor_operation_mode Tensor",
    "MinkowskiTensorField": "TensorField create_splat_coordinates",
    "MinkowskiUnion": "MinkowskiUnion MinkowskiUnionFunction",
    "diagnostics": "print_diagnostics",
    "sparse_matrix_functions": "spmm MinkowskiSPMMFunction MinkowskiSPMMAverageFunction",
    "modules.senet_block": "SEBasicBlock SEBottleneck",
    "utils.coords": "get_coords_map",
    "utils.gradcheck": "gradcheck",
    "utils.quantization": "quantize quantize_label sparse_quantize fnv_hash_vec",
    "utils.summary": "summary",
}


@pytest.mark.parametrize("way", ["install", "shim"])
def test_modules_are_found_under_both_names(way: str) -> None:
    program = f"""
import importlib
import MinkowskiEngine as ME
for name, inside in {MODULES!r}.items():
    prefixed, bare = (importlib.import_module(prefix + name) for prefix in ("MinkowskiEngine.", ""))
    assert prefixed is bare, name
    for value in inside.split():
        getattr(bare, value)
import MinkowskiEngineBackend._C as _C
assert _C.ConvolutionMode.DIRECT_GEMM and _C.CoordinateMapKey is ME.CoordinateMapKey
from MinkowskiEngine.MinkowskiPooling import MinkowskiAvgPooling
from MinkowskiConvolution import MinkowskiConvolution
assert ME.MinkowskiConvolution is MinkowskiConvolution and ME.MinkowskiAvgPooling is MinkowskiAvgPooling
assert isinstance(ME.MinkowskiUnion, type) and isinstance(ME.MinkowskiInterpolation, type)
print("found")
"""
    assert run_unmodified(program, "MinkowskiEngine", way) == "found"


def test_modules_of_ones_own_come_before_the_bare_names(tmp_path: pathlib.Path) -> None:
    (tmp_path / "utils.py").write_text("mine = True")
    done = run("import MinkowskiEngine, utils; print(utils.mine)", shim("MinkowskiEngine"), tmp_path)
    assert done.stdout.strip() == "True", done.stderr


def test_bare_names_need_minkowski_engine_first() -> None:
    done = run("import MinkowskiOps", shim("MinkowskiEngine"))
    assert "ModuleNotFoundError" in done.stderr


def test_numbers_of_axes() -> None:
    common = importlib.import_module("pumice.compat.minkowski.MinkowskiCommon")
    assert common.convert_to_int_list(3, 2) == common.convert_to_int_list(np.array([3, 3]), 2) == [3, 3]
    given = torch.tensor([1, 2], dtype=torch.int32)
    assert ME.convert_to_int_tensor(given, 2) is given
    made = ME.convert_to_int_tensor(4, 3)
    assert made.tolist() == [4, 4, 4] and made.dtype is torch.int32
    for wrong in ([1, 2, 3], {1, 2}):
        with pytest.raises(AssertionError, match="one for each of 2 axes"):
            ME.convert_to_int_tensor(wrong, 2)
    prepared = common.prep_args(1, [2, 2], 3, 1, ME.RegionType.HYPER_CROSS, D=2)
    assert [v if isinstance(v, int) else v.tolist() for v in prepared] == [[1, 1], [2, 2], [3, 3], [1, 1], 1]
    with pytest.raises(AssertionError, match="kernel_size"):
        common.prep_args(1, 1, 0, 1, ME.RegionType.HYPER_CUBE, D=2)
    assert common.get_postfix(torch.zeros(1)) == "CPU"


def test_kernels_say_what_they_are() -> None:
    cube, cross, custom = ME.RegionType.HYPER_CUBE, ME.RegionType.HYPER_CROSS, ME.RegionType.CUSTOM
    assert ME.get_kernel_volume(cube, [3, 2, 1], None, None, 3) == 6
    assert ME.get_kernel_volume(cross, [3, 5], None, None, 2) == 7
    offsets = torch.tensor([[0, 1], [2, 3], [0, 0]])
    assert ME.get_kernel_volume(custom, [1, 1], offsets, None, 2) == 3
    assert ME.convert_region_type(custom, 1, 1, 1, 1, offsets, None, 2)[1].tolist() == offsets.tolist()
    region, none, volume = ME.KernelGenerator(3, region_type=cross, dimension=2).get_kernel([2, 2], False)
    assert (region, none.numel(), volume) == (cross, 0, 5)
    for wrong in ((cross, [2, 3], None), (cube, [0, 3], None), (cube, [3, 3], offsets), (custom, [3, 3], None)):
        with pytest.raises(AssertionError, match="region_offset|kernel_size|region_type"):
            ME.get_kernel_volume(*wrong, None, 2)
    region = ME.KernelRegion(3, [1, 2], 1, cube, None, 2)
    assert region.kernel_size == [3, 3] and region.kernel_stride == [1, 2] and region.D == 2


def test_attributes_that_say_the_mode() -> None:
    mode = ME.MinkowskiEngineBackend._C.ConvolutionMode
    conv = ME.MinkowskiConvolution(2, 3, 3, dimension=2, convolution_mode=mode.COPY_GEMM)
    assert conv.convolution_mode is mode.COPY_GEMM
    assert ME.MinkowskiConvolutionTranspose(2, 3, 3, dimension=2).convolution_mode is mode.DEFAULT
    local = {"Sum": "SUM", "Avg": "AVG", "Max": "MAX"}
    for name, text in local.items():
        layer = getattr(ME, f"Minkowski{name}Pooling")(2, 2, dimension=2)
        assert layer.pooling_mode is ME.PoolingMode[f"LOCAL_{text}_POOLING"]
        layer = getattr(ME, f"MinkowskiGlobal{name}Pooling")()
        assert layer.pooling_mode is ME.PoolingMode[f"GLOBAL_{text}_POOLING_PYTORCH_INDEX"]
    assert ME.MinkowskiBroadcastAddition().operation_type is ME.BroadcastMode.ELEMENTWISE_ADDITON
    assert ME.MinkowskiBroadcastMultiplication().operation_type is ME.BroadcastMode.ELEMENTWISE_MULTIPLICATION
    with pytest.raises(AssertionError, match="PoolingMode"):
        ME.MinkowskiGlobalPooling("sum")


def test_what_the_machine_has(capsys: pytest.CaptureFixture[str]) -> None:
    assert ME.is_cuda_available() == torch.cuda.is_available()
    free, whole = ME.get_gpu_memory_info()
    assert (free > 0) == (whole > 0) == torch.cuda.is_available() and free <= whole
    assert ME.cuda_version() == ME.cudart_version()
    assert (ME.cuda_version() == -1) == (torch.version.cuda is None)
    with pytest.warns(DeprecationWarning, match="set_gpu_allocator"):
        ME.set_memory_manager_backend(ME.GPUMemoryAllocatorType.PYTORCH)
    ME.print_diagnostics()
    printed = capsys.readouterr().out
    assert torch.__version__ in printed and pumice.__version__ in printed


@pytest.mark.parametrize("version, number", [("12.4", 12040), ("13.0", 13000), (None, -1)])
def test_the_version_of_cuda_is_a_number(
    monkeypatch: pytest.MonkeyPatch, version: str | None, number: int
) -> None:
    monkeypatch.setattr(torch.version, "cuda", version)
    assert ME.cuda_version() == number


@pytest.mark.parametrize("rows", [0, 1, 33])
def test_hashes(rows: int) -> None:
    cells = np.random.default_rng(rows).integers(-50, 50, (rows, 3))
    expected = []
    for row in cells.tolist():
        number = 14695981039346656037
        for value in row:
            number = (number * 1099511628211 % 2**64) ^ (value % 2**64)
        expected.append(number)
    assert ME.utils.fnv_hash_vec(cells).tolist() == expected
    found = ME.utils.ravel_hash_vec(cells)
    assert found.dtype == np.uint64 and len(found) == rows
    if rows:
        moved = cells - cells.min(0)
        assert found.tolist() == np.ravel_multi_index(moved.T, moved.max(0) + 1).tolist()
    with pytest.raises(AssertionError, match="shape"):
        ME.utils.fnv_hash_vec(cells.reshape(-1))


@pytest.mark.parametrize("rows", [0, 1, 33, 500])
def test_quantize(rows: int) -> None:
    rng = np.random.default_rng(rows)
    cells = rng.integers(-3, 3, (rows, 3)).astype(np.int32)
    labels = rng.integers(0, 2, rows).astype(np.int32)
    extension = ME.MinkowskiEngineBackend._C
    first, inverse = extension.quantize_np(cells)
    seen: dict[tuple[int, ...], list[int]] = {}
    for place, row in enumerate(cells.tolist()):
        seen.setdefault(tuple(row), []).append(place)
    assert first.tolist() == [places[0] for places in seen.values()]
    assert [list(seen).index(tuple(row)) for row in cells.tolist()] == inverse.tolist()
    for like in (np.asarray, torch.from_numpy):
        _, _, merged = extension.quantize_label_np(like(cells), like(labels), -7)
        kinds = [set(labels[places].tolist()) for places in seen.values()]
        assert merged.tolist() == [kind.pop() if len(kind) == 1 else -7 for kind in kinds]
        assert type(merged) is type(like(cells))
    with pytest.raises(AssertionError, match="one for each"):
        extension.quantize_label_np(cells, labels[:, None], -7)


def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    conv = ME.MinkowskiConvolution(3, 8, 3, bias=True, dimension=2)
    norm = ME.MinkowskiBatchNorm(8)
    norm.bn.weight.requires_grad_(False)
    net = torch.nn.Sequential(conv, norm, conv.__class__(8, 4, 1, dimension=2), ME.MinkowskiToFeature())
    x = ME.SparseTensor(torch.randn(5, 3), torch.tensor([[0, i, -i] for i in range(5)], dtype=torch.int32))
    weights = 9 * 3 * 8 + 8 + 8 + 8 + 8 * 4
    assert ME.utils.summary(net, x) == (weights, weights - 8)
    lines = capsys.readouterr().out.splitlines()
    assert any("MinkowskiConvolution-1" in line and "[5, 8]" in line and "224" in line for line in lines)
    assert any("MinkowskiToFeature-5" in line and "[5, 4]" in line for line in lines)
    assert f"Trainable params: {weights - 8:,}" in lines and "Non-trainable params: 8" in lines
    assert not conv._forward_hooks
    with pytest.raises(Exception, match="wrong"):
        ME.utils.summary(torch.nn.Sequential(conv, Failing()), x)
    assert not conv._forward_hooks, "the looking stays behind"


class Failing(torch.nn.Module):
    def forward(self, x: object) -> object:
        raise ValueError("wrong")
