"""Layers that are one step of autograd: what a node brings itself and its bias are added in the product's own call, forward
and backward, and gradients that have gradients are made product by product."""

import pytest
import torch

import pumice
from pumice import nn, ops
from pumice.ops.graphs import biased

NODES, SOURCES, CHANNELS = 9, 7, 4
GENERATOR = torch.Generator().manual_seed(1)
EDGES = torch.randint(0, NODES, (2, 30), generator=GENERATOR)
TYPES = torch.randint(0, 3, (30,), generator=GENERATOR)
BETWEEN = torch.stack([EDGES[0] % SOURCES, EDGES[1]])

LAYERS = {
    "GCN": lambda l, **o: l.GCNConv(CHANNELS, 3, **o),
    "SAGE": lambda l, **o: l.SAGEConv(CHANNELS, 3, **o),
    "SAGE of sums": lambda l, **o: l.SAGEConv(CHANNELS, 3, aggr="sum", **o),
    "RGCN": lambda l, **o: l.RGCNConv(CHANNELS, 5, 3, **o),
    "RGCN of sums and bases": lambda l, **o: l.RGCNConv(CHANNELS, 5, 3, num_bases=2, aggr="sum", **o),
    "RGCN of blocks": lambda l, **o: l.RGCNConv(CHANNELS, 6, 3, num_blocks=2, **o),
    "RGCN without a root": lambda l, **o: l.RGCNConv(CHANNELS, 5, 3, root_weight=False, **o),
}


def edges_of(name, pair=False):
    edges = BETWEEN if pair else EDGES
    return (edges, TYPES) if name.startswith("RGCN") else (edges,)


def rows(count, channels=CHANNELS):
    return torch.randn(count, channels, dtype=torch.float64, requires_grad=True)


def of_parameters(layer, *inputs):
    """(a function of the inputs and of the parameters, both)"""
    names = [name for name, _ in layer.named_parameters()]
    values = [value.detach().clone().requires_grad_() for _, value in layer.named_parameters()]
    with torch.no_grad():
        for value in values:  # a bias of zeros hides that it is left out
            value.add_(torch.rand_like(value))

    def run(*given):
        x = given[: len(inputs)]
        parameters = dict(zip(names, given[len(inputs) :], strict=True))
        call = (x[0] if len(x) == 1 else x, *run.edges)
        return torch.func.functional_call(layer, parameters, call)

    return run, (*inputs, *values)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", LAYERS)
def test_first_and_second_derivatives_are_those_of_differences(name, bias):
    layer = LAYERS[name](nn.graph, bias=bias).double()
    run, given = of_parameters(layer, rows(NODES))
    run.edges = edges_of(name)
    assert torch.autograd.gradcheck(run, given)
    assert torch.autograd.gradgradcheck(run, given)


@pytest.mark.parametrize("name", [name for name in LAYERS if name != "GCN"])
def test_those_of_sources_and_targets_too(name):
    channels = (CHANNELS, 2)
    made = {
        "SAGE": lambda: nn.graph.SAGEConv(channels, 3),
        "SAGE of sums": lambda: nn.graph.SAGEConv(channels, 3, aggr="sum"),
        "RGCN": lambda: nn.graph.RGCNConv(channels, 5, 3),
        "RGCN of sums and bases": lambda: nn.graph.RGCNConv(channels, 5, 3, num_bases=2, aggr="sum"),
        "RGCN of blocks": lambda: nn.graph.RGCNConv(channels, 6, 3, num_blocks=2),
        "RGCN without a root": lambda: nn.graph.RGCNConv(channels, 5, 3, root_weight=False),
    }[name]()
    run, given = of_parameters(made.double(), rows(SOURCES), rows(NODES, 2))
    run.edges = edges_of(name, pair=True)
    wanted = given if name != "RGCN without a root" else (given[0], given[1].detach(), *given[2:])
    assert torch.autograd.gradcheck(run, wanted)
    assert torch.autograd.gradgradcheck(run, wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_each_gradient_is_there_without_the_others(name):
    layer = LAYERS[name](nn.graph).double()
    run, given = of_parameters(layer, rows(NODES))
    run.edges = edges_of(name)
    loss = run(*given).sin().sum()
    expected = torch.autograd.grad(loss, given)
    for at, gradient in enumerate(expected):
        alone = [value.detach() for value in given]
        alone[at].requires_grad_()
        found = torch.autograd.grad(run(*alone).sin().sum(), alone[at])[0]
        torch.testing.assert_close(found, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_a_maximum_within_relations_has_first_derivatives(reduce):
    layer = nn.graph.RGCNConv(CHANNELS, 5, 3, aggr="max").double()
    run, given = of_parameters(layer, rows(NODES))
    run.edges = (EDGES, TYPES)
    assert torch.autograd.gradcheck(run, given)
    with pytest.raises(pumice.UserError, match="no second derivative"):
        gradient = torch.autograd.grad(run(*given).sin().sum(), given[0], create_graph=True)[0]
        gradient.sum().backward()


def steps_to_leaves(output):
    """Steps of autograd on the longest way to an input."""
    deepest, waiting = 0, [(output.grad_fn, 1)]
    while waiting:
        step, depth = waiting.pop()
        if step is None or type(step).__name__ == "AccumulateGrad":
            continue
        deepest = max(deepest, depth)
        waiting += [(before, depth + 1) for before, _ in step.next_functions]
    return deepest


@pytest.mark.parametrize("name", ["SAGE", "RGCN", "RGCN without a root"])
def test_a_layer_is_one_step(name):
    layer = LAYERS[name](nn.graph)
    x = torch.randn(NODES, CHANNELS, requires_grad=True)
    assert steps_to_leaves(layer(x, *edges_of(name))) == 1


@pytest.mark.parametrize("name", LAYERS)
def test_inference_has_the_bits_of_training(name):
    layer = LAYERS[name](nn.graph)
    x = torch.randn(NODES, CHANNELS)
    trained = layer(x, *edges_of(name))
    with torch.no_grad():
        assert torch.equal(layer(x, *edges_of(name)), trained)
    with torch.inference_mode():
        assert torch.equal(layer(x, *edges_of(name)), trained)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", LAYERS)
def test_in_half_precision_every_gradient_has_the_type_of_what_it_is_of(name, dtype, device):
    layer = LAYERS[name](nn.graph).to(device, dtype)
    x = torch.randn(NODES, CHANNELS, dtype=dtype, device=device, requires_grad=True)
    output = layer(x, *(of.to(device) for of in edges_of(name)))
    assert output.dtype == dtype
    output.sum().backward()
    wide = LAYERS[name](nn.graph).double()
    wide.load_state_dict(layer.state_dict())
    given = x.detach().cpu().double().requires_grad_()
    expected = wide(given, *edges_of(name))
    expected.sum().backward()
    tolerance = 3e-2 if dtype == torch.bfloat16 else 4e-3
    torch.testing.assert_close(output.cpu().double(), expected, rtol=tolerance, atol=tolerance)
    for found, right in zip((x, *layer.parameters()), (given, *wide.parameters()), strict=True):
        assert found.grad.dtype == dtype
        torch.testing.assert_close(found.grad.cpu().double(), right.grad, rtol=8 * tolerance, atol=8 * tolerance)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_may_come_in_any_layout(name, device):
    layer = LAYERS[name](nn.graph).to(device)
    x = torch.randn(NODES, CHANNELS, device=device, requires_grad=True)
    edges = [of.to(device) for of in edges_of(name)]
    made = []
    for turn in (lambda g: g, lambda g: g.t().contiguous().t(), lambda g: torch.stack([g, g], 2)[..., 0]):
        output = layer(x, *edges)
        gradient = torch.linspace(-1, 1, output.numel(), device=device).view(output.shape)
        made.append(torch.autograd.grad(output, (x, *layer.parameters()), turn(gradient)))
    for other in made[1:]:
        for found, right in zip(other, made[0], strict=True):
            torch.testing.assert_close(found, right, rtol=1e-5, atol=1e-6)


def test_products_add_a_bias_of_values_and_heads_and_of_parts():
    graph = pumice.Graph(EDGES, NODES)
    x, values = rows(NODES, 6), torch.rand(30, 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(6, dtype=torch.float64, requires_grad=True)
    for of in (graph, pumice.formats.decompose(graph, "hyb")):
        for reduce in ("sum", "mean", "max"):
            found = biased(of, x, values, reduce, bias)
            right = ops.spmm(of, x, values, reduce) + bias
            torch.testing.assert_close(found, right)
            inputs = (x, values, bias)
            for ours, theirs in zip(torch.autograd.grad(found.sin().sum(), inputs), torch.autograd.grad(right.sin().sum(), inputs), strict=True):
                torch.testing.assert_close(ours, theirs)
