"""What importing Pumice beside PyTorch does to a process, and what it leaves alone."""

from __future__ import annotations

import importlib.util
import os
import pathlib

import pytest
import torch
from programs import run

import pumice
from pumice import _C
from pumice.window import Window

IMPORT = "import os, torch, pumice\nassert pumice.nn and pumice.Coordinates\n"


def test_the_environment_stays_as_it_was() -> None:
    done = run(
        "import os, subprocess, sys\n"
        "before = {name for name in os.environ if name.startswith('PUMICE')}\n"
        f"{IMPORT}"
        "assert before == {name for name in os.environ if name.startswith('PUMICE')}\n"
        # What a child is given by the system, which os.environ need not show.
        "child = subprocess.run(['env'], capture_output=True, text=True, check=True).stdout\n"
        "names = {line.partition('=')[0] for line in child.splitlines()}\n"
        "assert before == {name for name in names if name.startswith('PUMICE')}, names\n"
    )
    assert done.returncode == 0, done.stderr


def wheels_compiler() -> pathlib.Path:
    spec = importlib.util.find_spec("nvidia")
    major = str(torch.version.cuda).split(".")[0]
    for folder in [] if spec is None else spec.submodule_search_locations or []:
        for path in sorted(pathlib.Path(folder).glob(f"*/lib/libnvrtc.so.{major}")):
            return path
    pytest.skip("PyTorch's wheels bring no NVRTC here")


@pytest.mark.skipif("PUMICE_NVRTC" in os.environ, reason="PUMICE_NVRTC names another compiler")
def test_the_compiler_is_that_of_pytorchs_wheels() -> None:
    done = run(f"{IMPORT}print(pumice._C.kernel_compiler()['path'])")
    assert done.returncode == 0, done.stderr
    assert pathlib.Path(done.stdout.strip()).samefile(wheels_compiler())


def test_a_compiler_that_is_named_goes_first() -> None:
    done = run(f"{IMPORT}print(pumice._C.kernel_compiler()['reason'])", PUMICE_NVRTC="/nowhere/nvrtc.so")
    assert done.returncode == 0, done.stderr
    assert "/nowhere/nvrtc.so" in done.stdout


class Own(torch.Tensor):
    """A class of tensors, which is asked by its methods."""


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.as_subclass(Own)], ids=["plain", "own"])
def test_tensors_are_what_their_methods_say(make) -> None:  # noqa: ANN001
    cells = torch.tensor([[0, 0, 0, 0], [0, 1, 0, 0], [0, 5, 0, 0]], dtype=torch.int32)
    window = Window.centred([3, 3, 3], [1, 1, 1])
    map = pumice.ops.submanifold_map(pumice.Coordinates(cells), window)
    weight = torch.randn(27, 4, 6)

    def convolve(features: torch.Tensor, weight: torch.Tensor = weight) -> torch.Tensor:
        return _C.convolution(features, weight, map, None, 1, False, False, None, None, None, 0)

    wide = torch.randn(3, 8)
    expected = convolve(wide[:, :4].contiguous())
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        features = wide[:, :4].to(dtype).contiguous()
        result = convolve(make(features), make(weight.to(dtype)))
        assert result.dtype == dtype and result.shape == (3, 6)
        torch.testing.assert_close(result.float(), expected, rtol=0.02, atol=0.05)
    # From the middle of a tensor, of one row however it lies, and of none.
    rows = torch.randn(5, 4)
    assert torch.equal(convolve(make(rows[2:])), convolve(rows[2:].clone()))
    one = pumice.ops.submanifold_map(pumice.Coordinates(cells[:1]), window)
    row = torch.randn(2, 8)[:1, :4]
    arguments = (weight, one, None, 1, False, False, None, None, None, 0)
    assert torch.equal(_C.convolution(make(row), *arguments), _C.convolution(row.clone(), *arguments))
    # What does not lie in memory as its values are is brought there.
    turned = torch.randn(4, 3).t()
    for features in (wide[:, :4], turned, torch._neg_view(-wide[:, :4].contiguous())):
        assert torch.equal(convolve(make(features)), convolve(features.clone().contiguous()))
    for features, named in (
        (torch.ones(3, 4, dtype=torch.bool), "torch.bool"),
        (torch.ones(3, 4, dtype=torch.complex64), "complex64"),
        (torch.empty(3, 4, device="meta"), "no memory"),
    ):
        with pytest.raises(pumice.UserError, match=named):
            convolve(make(features))


def test_the_table_is_used_where_pytorch_has_one() -> None:
    having = hasattr(torch.Tensor, "__dlpack_c_exchange_api__")
    assert having or torch.__version__ < "2.10"
    assert _C.has_exchange_table() == having


class Astray(torch.Tensor):
    def data_ptr(self) -> str:
        return "here"


def test_an_address_that_is_none_is_said_so() -> None:
    with pytest.raises(TypeError, match="int"):
        _C.types_fit(torch.ones(3, 4).as_subclass(Astray), None, (), (), False)


@pytest.mark.parametrize("exchange", ["None", "7", "'a table'"])
def test_without_dlpacks_table_all_is_as_with_it(exchange: str) -> None:
    script = (
        "import sys, torch\n"
        "{}"
        "import pumice\n"
        "print(pumice._C.has_exchange_table(), file=sys.stderr)\n"
        "torch.manual_seed(1)\n"
        "net = pumice.models.MinkUNet42(4, 3, width_factor=0.125)\n"
        "voxels = pumice.voxelize(4 * torch.rand(300, 3), torch.rand(300, 4), size=0.1)\n"
        "scores = net(voxels.tensor).features\n"
        "scores.square().sum().backward()\n"
        "print(*(p.grad.double().sum().item().hex() for p in net.parameters()))\n"
    )
    without, having = (
        run(script.format(line), OMP_NUM_THREADS="1")
        for line in (f"torch.Tensor.__dlpack_c_exchange_api__ = {exchange}\n", "")
    )
    assert without.returncode == having.returncode == 0, without.stderr + having.stderr
    assert without.stdout == having.stdout and len(without.stdout) > 1000
    assert "False" in without.stderr
