"""Weights that lie in other libraries' layouts go into a chain as they lie: results and gradients are those of
weights that were brought into the order of kernels before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from conftest import random_sites, working_type

import pumice
from pumice import ops
from pumice.compat.foreign import ForeignWeight
from pumice.nn.chain import Code, as_kernels_take_it
from pumice.window import Window

# (kernel, input channels, output channels), one behind the other: sizes that are multiples of 16 bytes and others.
LINKS = [((3, 3, 3), 8, 16), ((1, 1, 1), 16, 3), ((1, 3, 3), 3, 5), ((3, 1, 3), 5, 8), ((3, 3, 3), 8, 8)]
LAYOUTS = ["spconv", "torchsparse", "minkowski", "pumice"]


class Given:
    """What a chain of as many links is given, and the same with weights that were turned."""

    def __init__(self, kind: str, count: int, device: torch.device, dtype: torch.dtype, mixed: bool) -> None:
        generator = torch.Generator().manual_seed(count)
        coords = pumice.Coordinates(random_sites(3, 4, 40).to(device))
        links = LINKS[:count]
        self.code = Code([(0 if at == 0 else 1 + at, -1, -1, at % 2 == 0, 1e-3, 0.1) for at in range(count)])
        self.features = torch.randn(len(coords), links[0][1], generator=generator).to(device, dtype)
        self.parameters: list[torch.Tensor] = []
        self.running: list[torch.Tensor] = []
        self.maps: list[Any] = []
        self.layouts: list[Any] = []
        self.layers = []
        for at, (size, inputs, outputs) in enumerate(links):
            window = Window.centred(size, (1, 1, 1))
            layer = ForeignWeight(kind, size, strided=True)
            shape = (outputs, *size, inputs) if kind == "spconv" else (window.volume, inputs, outputs)
            norm = torch.float32 if mixed and dtype == torch.float16 else dtype
            weight = torch.randn(shape, generator=generator).to(device, dtype)
            scale, shift = (torch.randn(outputs, generator=generator).to(device, norm) for _ in range(2))
            self.parameters += [weight, scale, shift]
            variance = 1 + torch.rand(outputs, generator=generator)
            self.running += [torch.zeros(outputs).to(device, norm), variance.to(device, norm), torch.zeros((), dtype=torch.int64, device=device)]
            self.maps.append(ops.submanifold_map(coords, window))
            self.layouts.append(layer.as_lies(weight) if at != 1 or not mixed else None)
            self.layers.append(layer)
            if self.layouts[-1] is None:
                self.parameters[-3] = layer.turn(weight).contiguous()

    def turned(self) -> list[torch.Tensor]:
        made = list(self.parameters)
        for at, layout in enumerate(self.layouts):
            if layout is not None:
                made[3 * at] = as_kernels_take_it(layout, made[3 * at]).contiguous()
                assert torch.equal(made[3 * at], self.layers[at].turn(self.parameters[3 * at]))
        return made

    def run(self, parameters: list[torch.Tensor], layouts: list[Any], training: bool) -> torch.Tensor:
        running = tuple(tensor.clone() for tensor in self.running)
        start = self.code.begin(self.features, None, tuple(parameters), running, training)
        assert start is not None
        return self.code.run(
            start, tuple(self.maps), tuple(parameters), running, [None] * len(self.maps), tuple(layouts)
        )


def types_of(device: torch.device) -> list[torch.dtype]:
    return [working_type(device), torch.float32, torch.float16]


@pytest.mark.parametrize("count", [1, 2, len(LINKS)])
@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize("mixed", [False, True], ids=["", "with norms in float32 and one weight as kernels take it"])
def test_results_and_gradients_are_those_of_turned_weights(
    device: torch.device, kind: str, count: int, mixed: bool
) -> None:
    for dtype in types_of(device):
        given = Given(kind, count, device, dtype, mixed)
        plain: list[Any] = [None] * count
        with torch.no_grad():
            found = given.run(given.parameters, given.layouts, False)
            assert torch.equal(found, given.run(given.turned(), plain, False))
        results = []
        for parameters, layouts in ((given.parameters, given.layouts), (given.turned(), plain)):
            learned = [tensor.clone().requires_grad_() for tensor in parameters]
            out = given.run(learned, layouts, True)
            results.append((out, torch.autograd.grad(out.float().square().sum(), learned)))
        (out, gradients), (expected, wanted) = results
        assert torch.equal(out, expected)
        for at, (gradient, parameter, want) in enumerate(zip(gradients, given.parameters, wanted)):
            assert gradient.shape == parameter.shape and gradient.is_contiguous()
            layout = given.layouts[at // 3] if at % 3 == 0 else None
            if layout is not None:
                gradient = as_kernels_take_it(layout, gradient)
            # Sums of a GPU are in another order each time.
            tolerance = 0 if device.type == "cpu" else 2e-2 if dtype == torch.float16 else 1e-4
            torch.testing.assert_close(
                gradient, want, rtol=tolerance, atol=tolerance * max(1.0, want.abs().max().item())
            )


@pytest.mark.parametrize("kind", LAYOUTS)
def test_second_derivatives_go_through_layouts(kind: str) -> None:
    given = Given(kind, 2, torch.device("cpu"), torch.float64, False)
    learned = [tensor.clone().requires_grad_() for tensor in given.parameters]

    def second(parameters: list[torch.Tensor], layouts: list[Any]) -> tuple[torch.Tensor, ...]:
        loss = given.run(parameters, layouts, True).square().sum()
        (first,) = torch.autograd.grad(loss, parameters[:1], create_graph=True)
        return torch.autograd.grad(first.square().sum(), learned[0])

    (found,) = second(learned, given.layouts)
    turned = [
        as_kernels_take_it(given.layouts[at // 3], tensor).contiguous() if at % 3 == 0 else tensor
        for at, tensor in enumerate(learned)
    ]
    loss = given.run(turned, [None] * 2, True).square().sum()
    (first,) = torch.autograd.grad(loss, learned[:1], create_graph=True)
    (wanted,) = torch.autograd.grad(first.square().sum(), learned[0])
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_weight_of_another_size_than_its_layout_is_refused() -> None:
    given = Given("spconv", 2, torch.device("cpu"), torch.float32, False)
    given.parameters[0] = torch.randn(16, 3, 3, 3, 7)
    with torch.no_grad(), pytest.raises(pumice.UserError, match="weight has shape"):
        given.run(given.parameters, given.layouts, False)
