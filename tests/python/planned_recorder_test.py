"""What earlier passes and other models leave behind does not keep a graph from being recorded."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import NO_GPU
from planned_test import expect_same, of_model, scan, unet

import pumice
from pumice import nn
from pumice.planned.accumulate_grad import let_go_of_earlier_passes
from pumice.planned.outputs import SitesOfRun, take_apart
from pumice.planned.scans import Grid

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason=NO_GPU)


def test_what_is_kept_of_an_output_holds_no_graph_of_gradients() -> None:
    cells, features = scan(100, 1)
    x = pumice.SparseTensor(cells, features.requires_grad_(), batch_size=2)
    made = {"tensor": nn.SubMConv3d(4, 4, 3)(x), "features": features * 2}
    leaves = take_apart(made, SitesOfRun(x.coords, Grid(3, 2, None, (1, 1, 1)))).leaves
    assert made["tensor"].features.requires_grad
    assert [leaf.values.requires_grad for leaf in leaves] == [False, False]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_earlier_passes_lead_to_the_same_parameters(dtype: torch.dtype) -> None:
    parameters = [torch.nn.Parameter(torch.arange(3.0).to(dtype)), torch.nn.Parameter(torch.ones(2, 2, dtype=dtype))]
    frozen = torch.nn.Parameter(torch.ones(1), requires_grad=False)
    before = [(one.data_ptr(), one._version, one.dtype, one.clone()) for one in parameters]
    earlier = (parameters[0] * 2).sum()
    kept = parameters[0].grad_fn, torch.autograd.graph.get_gradient_edge(parameters[0]).node
    assert let_go_of_earlier_passes([*parameters, frozen]) == []
    assert torch.autograd.graph.get_gradient_edge(parameters[0]).node is not kept[1]
    (parameters[0] * 3).sum().backward()
    earlier.backward()
    assert parameters[0].grad.tolist() == [5, 5, 5] and parameters[1].grad is None
    for one, (place, version, kind, values) in zip(parameters, before):
        assert (one.data_ptr(), one._version, one.dtype) == (place, version, kind) and torch.equal(one, values)


class LetsGo(torch.nn.Module):
    """Leaves another compiled model to a reference cycle while a graph is recorded, and makes Python collect such."""

    def __init__(self, held: list[Any]) -> None:
        super().__init__()
        self.held = held

    def forward(self, x: pumice.SparseTensor) -> pumice.SparseTensor:
        if torch.cuda.is_current_stream_capturing() and self.held:
            cycle = [self.held.pop()]
            cycle.append(cycle)
            del cycle
            assert len([[] for _ in range(100_000)]) == 100_000
        return x


@cuda
def test_a_graph_that_only_a_cycle_holds_does_not_end_the_recording_of_another_cuda() -> None:
    given = scan(2000, 1, "cuda")
    net = unet().cuda()
    held = [pumice.compile(unet().cuda())]
    fast = pumice.compile(nn.Sequential(LetsGo(held), net).eval())
    for model in (held[0], fast):
        for _ in range(4):
            made = model(*given, batch_size=2)
    assert not held
    expect_same(made, of_model(net, *given))
