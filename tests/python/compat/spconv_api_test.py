"""Modules beside the layers: what code for spconv imports, prints, catches and traces."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest
import torch
from conftest import random_sites

import pumice
import pumice.compat.spconv as spconv
from pumice.compat.spconv import constants, test_utils, tools
from pumice.compat.spconv.pytorch import core, cppcore, modules


def tensor(device: torch.device, channels: int = 4) -> spconv.SparseConvTensor:
    cells = random_sites(3, 9, 100).to(device)
    return spconv.SparseConvTensor(torch.randn(len(cells), channels).to(device), cells, [9] * 3, 2)


MODULES = {
    "constants": "AllocKeys SPCONV_BWD_SPLITK SPCONV_DIRECT_TABLE_HASH_SIZE_SCALE PACKAGE_ROOT DISABLE_JIT",
    "core": "ConvAlgo AlgoHint NDIM_DONT_CARE",
    "cppconstants": "CPU_ONLY_BUILD",
    "tools": "CUDAKernelTimer CPU_ONLY_BUILD nullcontext",
    "utils": "CPU_ONLY_BUILD nullcontext Point2VoxelCPU3d",
    "test_utils": "TestCase params_grid generate_sparse_data",
    "pytorch.constants": "PYTORCH_VERSION is_amp_enabled",
    "pytorch.conv": "SPCONV_VERSION_NUMBERS nullcontext FILTER_HWIO DEFAULT_SPARSE_CONV_TYPES tv",
    "pytorch.core": "SparseConvTensor IndiceData ImplicitGemmIndiceData expand_nd scatter_nd",
    "pytorch.cppcore": "get_current_stream get_arch torch_tensor_to_tv",
    "pytorch.functional": "SubMConvFunction implicit_gemm indice_subm_conv sparse_add_hash_based",
    "pytorch.modules": "PrintTensorMeta PrintCurrentTime SparseSyncBatchNorm",
    "pytorch.ops": "get_indice_pairs implicit_gemm INT32_MAX DEBUG fused_indice_conv AllocKeys",
    "pytorch.pool": "ALL_POOL_LAYERS SparseMaxPool SparseAvgPool",
    "pytorch.spatial": "RemoveDuplicate",
}
REFUSED = ["algo", "benchmark", "core_cc", "pytorch.quantization", "pytorch.interpreter"]


def test_modules_are_found_by_their_names() -> None:
    code = "import pumice.compat as c; c.install('spconv'); import importlib\n"
    for module, names in MODULES.items():
        code += f"m = importlib.import_module('spconv.{module}')\n"
        code += f"assert m.__name__.startswith('pumice.'), m\n[getattr(m, n) for n in {names.split()}]\n"
    for module in REFUSED:
        code += f"try: importlib.import_module('spconv.{module}')\n"
        code += "except ImportError as e: assert 'is not there in pumice.compat: ' in str(e), e\n"
        code += "else: raise SystemExit('imported')\n"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(ImportError, match="int8"):
        importlib.import_module("pumice.compat.spconv.pytorch.quantization.core")


def test_making_a_tensor_is_silent() -> None:
    code = "import torch, pumice.compat.spconv as s\n"
    code += "s.SparseConvTensor(torch.zeros(1, 2), torch.zeros(1, 4).int(), [9] * 3, 2)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert done.stdout == done.stderr == b""


def test_generated_data_is_what_it_says() -> None:
    np.random.seed(3)
    data = test_utils.generate_sparse_data([4, 5, 6], [7, 0, 9], 2, shape_scale=2)
    assert data["features"].shape == (16, 2) and data["features"].dtype == np.float32
    cells = data["indices"]
    assert cells.dtype == np.int32 and len(np.unique(cells, axis=0)) == 16
    assert (cells[:, -1] == np.repeat([0, 2], [7, 9])).all() and (cells[:, :-1] % 2 == 0).all()
    expected = np.zeros((3, 2, 4, 5, 6), np.float32)
    for (*cell, item), row in zip(cells, data["features"]):
        expected[(item, slice(None), *cell)] = row
    assert (data["features_dense"] == expected).all()
    whole = test_utils.generate_sparse_data([4, 4], [3], 1, integer=True, data_range=(2, 5))
    assert set(whole["features"].ravel()) <= {2, 3, 4}
    assert "features_dense" not in test_utils.generate_sparse_data([4], [2], 1, with_dense=False)
    # What spconv gives for this seed: one shuffle for each item, then the features.
    np.random.seed(3)
    order = np.stack(np.meshgrid(np.arange(4), np.arange(4)), -1).reshape(-1, 2)
    np.random.shuffle(order)
    features = np.random.uniform(-1, 1, size=[3, 1])
    np.random.seed(3)
    again = test_utils.generate_sparse_data([4, 4], [3], 1)
    assert (again["indices"][:, :2] == order[:3]).all()
    assert (again["features"] == features.astype(np.float32)).all()


def test_comparisons_of_test_utils() -> None:
    grid = test_utils.params_grid([1, 2], ["a", "b"])
    assert grid == [[1, "a"], [1, "b"], [2, "a"], [2, "b"]]
    case = test_utils.TestCase()
    case.assertAllEqual([1.0, np.nan], np.array([1.0, np.nan]))
    case.assertAllClose({"a": [1.0]}, {"a": [1.0 + 1e-7]})
    for wrong in ([1.0, 2.0], [[1.0]], [1.1]):
        with pytest.raises(AssertionError):
            case.assertAllClose([1.0], wrong)
        with pytest.raises(AssertionError):
            case.assertAllEqual([1.0], wrong)
    with pytest.raises(ValueError, match="dict"):
        case.assertAllClose({}, [1])


def test_a_timer_names_what_it_times() -> None:
    timer = tools.CUDAKernelTimer(True)
    with timer.namespace("a"):
        for _ in range(2):
            with timer.record("b"):
                torch.ones(1000).sum()
    times = timer.get_all_pair_time()
    assert list(times) == ["a.b"] and times["a.b"] > 0
    assert timer.collect_by_name("b", times) == times and not timer.collect_by_name("c", times)
    off = tools.CUDAKernelTimer(False)
    with off.namespace("a"), off.record("b"):
        pass
    assert off.get_all_pair_time() == {}


def test_arrays_of_cumm_lie_on_the_tensors_memory(device: torch.device) -> None:
    assert isinstance(cppcore.get_current_stream(), int)
    values = torch.arange(6.0)
    cppcore.torch_tensor_to_tv(values).numpy_view()[2] = 9
    assert values[2] == 9
    assert cppcore.torch_tensor_to_tv(values, shape=[2, 3]).shape == [2, 3]
    if device.type == "cuda":
        with pytest.raises(pumice.UserError, match=".cpu()"):
            cppcore.torch_tensor_to_tv(values.to(device))


def test_scatter_nd(device: torch.device) -> None:
    indices = torch.tensor([[[0, 1], [2, 0]]], device=device)
    updates = torch.randn(1, 2, 4, device=device)
    result = core.scatter_nd(indices, updates, [3, 2, 4])
    expected = torch.zeros(3, 2, 4, device=device)
    expected[0, 1], expected[2, 0] = updates[0, 0], updates[0, 1]
    assert torch.equal(result, expected)


def test_printing_modules_hand_on(capsys: pytest.CaptureFixture[str]) -> None:
    x = tensor(torch.device("cpu"))
    assert modules.PrintTensorMeta()(x) is x and modules.PrintCurrentTime()(x, "now") is x
    printed = capsys.readouterr().out
    assert str(x.features.max()) in printed and "now" in printed


REPRS = [
    (lambda: spconv.SubMConv3d(4, 8, 3), "4, 8, kernel_size=[3, 3, 3], stride=[1, 1, 1], padding=[0, 0, 0], "
     "dilation=[1, 1, 1], output_padding=[0, 0, 0], algo=ConvAlgo.MaskImplicitGemm"),
    (lambda: spconv.SparseConv2d(4, 8, 7, 2, bias=False), "4, 8, kernel_size=[7, 7], stride=[2, 2], "
     "padding=[0, 0], dilation=[1, 1], output_padding=[0, 0], bias=False, algo=ConvAlgo.Native"),
    (lambda: spconv.SparseMaxPool1d(2), "kernel_size=[2], stride=[2], padding=[0], dilation=[1], "
     "algo=ConvAlgo.MaskImplicitGemm"),
]  # fmt: skip


@pytest.mark.parametrize("make, text", REPRS)
def test_layers_print_as_in_spconv(make, text: str) -> None:
    assert make().extra_repr() == text


def test_a_large_kernel_has_the_algorithm_of_spconv() -> None:
    layer = spconv.SubMConv3d(4, 4, 5, large_kernel_fast_algo=True)
    assert layer.algo is spconv.ConvAlgo.MaskImplicitGemm
    assert spconv.SubMConv3d(4, 4, 5).algo is spconv.ConvAlgo.Native
    assert layer.output_padding == [0, 0, 0]


def test_what_spconv_asserts_is_caught_as_that(device: torch.device) -> None:
    x, other = tensor(device), tensor(device, 3)
    cells, features = x.indices, x.features
    strided = spconv.SparseConv3d(4, 4, 3, 2, indice_key="a").to(device)
    same = spconv.SubMConv3d(4, 4, 3, indice_key="a").to(device)
    part = spconv.SparseConvTensor(features[:3], cells[:3], [9] * 3, 2)
    for call in (
        lambda: spconv.SparseConvTensor(features, cells.long(), [9] * 3, 2),
        lambda: spconv.SparseConvTensor(features, cells, [9] * 2, 2),
        lambda: spconv.SparseConvTensor(features, cells, [9] * 3, 0),
        lambda: spconv.SparseConvTensor(features[None], cells, [9] * 3, 2),
        lambda: same(other),
        lambda: same(features),
        lambda: strided(same(x)),
        lambda: spconv.SparseInverseConv3d(4, 4, 3, "nobody").to(device)(x),
        lambda: spconv.SparseInverseConv3d(4, 4, 3, "a").to(device)(same(x)),
        lambda: spconv.SparseConv3d(4, 4, 1, padding=1),
        lambda: spconv.SparseConv3d(4, 4, [3, 3]),
        lambda: spconv.AddTable()([x, part]),
        lambda: spconv.JoinTable()([x, part]),
        lambda: spconv.functional.sparse_add(x, other),
    ):
        with pytest.raises(AssertionError) as caught:
            call()
        assert isinstance(caught.value, pumice.UserError)


class Net(torch.nn.Module):
    """Makes its tensor in forward, as networks for torch.fx do."""

    def __init__(self) -> None:
        super().__init__()
        self.net = spconv.SparseSequential(
            spconv.SubMConv3d(4, 8, 3, bias=False, indice_key="a"),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
            spconv.SparseConv3d(8, 8, 2, 2, bias=False, indice_key="b"),
            torch.nn.BatchNorm1d(8),
            torch.nn.ReLU(),
            spconv.SparseInverseConv3d(8, 4, 2, "b", bias=False),
        )

    def forward(self, features, indices, batch_size):
        return self.net(spconv.SparseConvTensor(features, indices, [9] * 3, batch_size))


class Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        sparse = isinstance(m, spconv.SparseConvolution)
        return sparse or super().is_leaf_module(m, module_qualified_name)


def test_norms_are_folded_into_layers_through_torch_fx(device: torch.device) -> None:
    net = Net().eval()
    for norm in (net.net[1], net.net[4]):
        norm.running_mean.uniform_(-1, 1)
        norm.running_var.uniform_(0.5, 2)
        norm.bias.data.uniform_(-1, 1)
    graph = torch.fx.GraphModule(net, Tracer().trace(net))
    called = {str(node.target): node for node in graph.graph.nodes if node.op == "call_module"}
    assert list(called) == [f"net.{i}" for i in range(7)]
    for at in (0, 3):
        conv, norm = (graph.get_submodule(f"net.{i}") for i in (at, at + 1))
        factor = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        folded = spconv.SparseConvolution(
            3, conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride, subm=conv.subm,
            indice_key=conv.indice_key, act_type=spconv.cumm.tensorview.gemm.Activation.ReLU,
        )  # fmt: skip
        folded.weight.data = (conv.weight * factor[:, None, None, None, None]).detach()
        folded.bias.data = (norm.bias - norm.running_mean * factor).detach()
        graph.set_submodule(f"net.{at}", folded.eval())
        for gone in (at + 1, at + 2):
            node = called[f"net.{gone}"]
            node.replace_all_uses_with(node.args[0])
            graph.graph.erase_node(node)
    graph.recompile()
    x = tensor(device)
    net.to(device), graph.to(device)
    expected, found = (n(x.features, x.indices, 2) for n in (net, graph))
    assert torch.equal(expected.indices, found.indices)
    torch.testing.assert_close(found.features, expected.features, rtol=0, atol=1e-5)


def test_constants_of_the_environment_change_nothing_else() -> None:
    assert constants.PACKAGE_ROOT.is_dir() and constants.AllocKeys.PairFwd == "PairFwd"
    assert spconv.pytorch.constants.PYTORCH_VERSION >= [2, 0, 0]
    assert spconv.pytorch.constants.is_amp_enabled() is False
