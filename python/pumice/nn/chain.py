"""Runs consecutive layers in one call of the extension: convolutions, each with its batch norm, a residual and a
ReLU.

The time of the host for a call (Python and autograd) is then spent once for a whole stage of a network. A chain runs
if all its norms are in training and all its parameters learn, or if all its norms are in evaluation and no tensor
wants a gradient; else its layers run one by one (fused.py) and give the same numbers. fused.py explains the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .. import _C, ops
from ..coords import Coordinates
from ..ops import modes
from ..ops.recomputed import gradients_of
from ..tensor import SparseTensor
from .convolution import Convolution
from .kept import used
from .submanifold import keeps_sites

Row = tuple[int, int, int, bool, float, float]
_GIVEN = 2  # inputs of a chain, before the results of its links (`Code`)
hooks_on_saved = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)


class FoldedWeights(NamedTuple):
    """The weights of a chain of frozen layers, their norms folded, from call to call. The extension reads this by
    position (`kept_weights` in python/src/recorder/chains.cpp)."""

    packed: tuple[_C.PackedWeights, ...]  # of each layer
    made_for: tuple[Any, ...]
    made_of: tuple[Any, ...]  # kept alive, so that no other tensor can have the same address
    made: _C.ChainWeights


def made_for(features: Tensor, numerics: tuple[bool, bool]) -> tuple[Any, ...]:
    """What weights are made for: they are ready for the stream that they were made on."""
    return features.dtype, numerics, modes.stream_of(features)


class Link:
    """relu(norm(convolution(value `input`)) + value `residual`); with `second`, the convolution takes the channels of
    that value behind those of `input`."""

    __slots__ = ("convolution", "input", "norm", "relu", "residual", "second")

    def __init__(
        self, convolution: Convolution, norm: torch.nn.BatchNorm1d, relu: bool, input: int
    ) -> None:
        self.convolution = convolution
        self.norm = norm
        self.relu = relu
        self.input = input
        self.second = -1
        self.residual = -1

    def copy(self) -> Link:
        other = Link(self.convolution, self.norm, self.relu, self.input)
        other.second, other.residual = self.second, self.residual
        return other


class Code:
    """A chain in the form that the extension takes: a row of (input, second or -1, residual or -1, ReLU, epsilon,
    momentum) for each link, where values are numbered. Values 0 and 1 are the inputs of the chain, 2 + i is the result of link i.
    `plans`: those of each link, None where they are chosen."""

    def __init__(self, rows: list[Row], plans: tuple[_C.Plans | None, ...] | None = None) -> None:
        self.rows = rows
        self.plans = plans or (None,) * len(rows)
        self.c = _C.Chain(rows, plans)
        self.weights: FoldedWeights | None = None

    def begin(
        self,
        features: Tensor,
        added: Tensor | None,
        parameters: tuple[Tensor, ...],
        running: tuple[Tensor | None, ...],
        training: bool,
    ) -> tuple[Tensor, Tensor | None, bool] | None:
        """The two values that are given, in the type to compute in, and whether a gradient is wanted; None
        where the layers have to run one by one."""
        learns = modes.wants_gradient(features, added, *parameters, *running)
        if learns is not training:
            return None
        if learns:
            if not all(parameter.requires_grad for parameter in parameters):
                return None
            if hooks_on_saved is not None and hooks_on_saved(True) is not None:
                return None  # hooks on saved tensors have to see those of every layer
        dtype = modes.autocast_dtype(features)
        if dtype is not None:
            features = features.to(dtype)
            added = None if added is None else added.to(dtype)
        if not _C.types_fit(features, added, parameters, running, dtype is not None):
            return None
        return features, added, learns

    def run(
        self,
        given: tuple[Tensor, Tensor | None, bool],
        maps: tuple[_C.Map, ...],
        parameters: tuple[Tensor, ...],
        running: tuple[Tensor | None, ...],
        kept: list[Any],
        layouts: tuple[_C.WeightLayout | None, ...],
        learned: tuple[Tensor, ...] | None = None,
    ) -> Tensor:
        """The result of the last link for what `begin` returned. `kept`: the packed weights of each frozen layer, None
        for the others; `layouts`: those of the weights, None for one that is [offsets, in, out]; `learned`: the
        parameters of layers, where frozen ones were turned into `parameters`."""
        features, added, learns = given
        if learns:
            return _apply(features, added, self, maps, running, layouts, *parameters)
        folded = self._folded(features, parameters, running, kept, layouts, learned or parameters)
        return _C.chain_inference(features, added, self.c, maps, folded, *modes.of(features))

    def _folded(
        self,
        features: Tensor,
        parameters: tuple[Tensor, ...],
        running: tuple[Tensor | None, ...],
        kept: list[Any],
        layouts: tuple[_C.WeightLayout | None, ...],
        learned: tuple[Tensor, ...],
    ) -> _C.ChainWeights:
        """The packed weights with their norms folded: made at each call, since PyTorch does not count writes into
        `.data`, unless all layers are frozen."""
        if None in kept:
            self.weights = None
            return _C.ChainWeights(self.c, features, parameters, layouts, running)
        packed, now = tuple(kept), made_for(features, modes.of(features))
        known = self.weights
        if (
            known is not None
            and known.packed == packed
            and known.made_for == now
            and known.made.is_of(learned, running)
        ):
            used(known.made)
            return known.made
        made = _C.ChainWeights(self.c, features, parameters, layouts, running, learned)
        used(made)
        if not modes.is_recorded(features):
            self.weights = FoldedWeights(packed, now, (parameters, learned, running), made)
        return made


class Chain:
    """A list of links that runs as one; the last link makes the result."""

    def __init__(self, links: list[Link]) -> None:
        self.links = links
        self.layouts = (None,) * len(links)  # own layers keep weights as kernels take them
        self._describe()

    def _describe(self) -> None:
        """Makes the `Code` of the chain, with the current settings of the norms and plans of the layers."""
        self.settings = [
            (link.norm.eps, link.norm.momentum, link.convolution._plans) for link in self.links
        ]
        # Links on the same sites with the same window have the same map: that of the first of them.
        sites = list(range(_GIVEN))  # of each value, as a number
        first: dict[Any, int] = {}
        self.windows = [link.convolution.window for link in self.links]
        self.same_map = list(range(len(self.links)))  # for each link, the first one with its map
        for index, link in enumerate(self.links):
            if keeps_sites(link.convolution):
                on = sites[link.input]
                self.same_map[index] = first.setdefault((on, self.windows[index]), index)
                sites.append(on)
            else:
                sites.append(_GIVEN + index)
        self.code = Code(
            [
                (
                    link.input, link.second, link.residual, link.relu, eps,
                    0.0 if momentum is None else momentum,
                )  # fmt: skip
                for link, (eps, momentum, _) in zip(self.links, self.settings)
            ],
            tuple(plans for _, _, plans in self.settings),
        )

    def run(self, x: SparseTensor, other: SparseTensor | None, like: Any) -> SparseTensor | None:
        """The result for the values 0 and 1; None where the layers have to run one by one."""
        features = x.features
        if modes.traced(features):
            return None
        gathered = self._gather()
        if gathered is None:
            return None
        parameters, running, training = gathered
        if training:
            for link in self.links:
                link.convolution._kept.norm_trains()
        added = None if other is None else other.features
        given = self.code.begin(features, added, parameters, running, training)
        if given is None:
            return None
        found = self._maps(x, other, given[0], like, least=2 if given[2] else 0)
        if found is None:
            return None
        maps, coords = found
        kept = [link.convolution._kept.of(link.convolution.training) for link in self.links]
        return SparseTensor._of(coords, self.code.run(given, maps, parameters, running, kept, self.layouts))

    def _gather(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...], bool] | None:
        """(weight, norm's weight, norm's bias) and (running mean, running variance, number of batches) of
        all links, and whether their norms are in training, all or none of them."""
        parameters: list[Tensor] = []
        running: list[Tensor] = []
        training = self.links[0].norm.training
        for link, (eps, momentum, plans) in zip(self.links, self.settings):
            layer, norm = link.convolution, link.norm
            if norm.training is not training or (training and norm.momentum is None):
                return None
            if norm.eps != eps or norm.momentum != momentum or layer._plans is not plans:  # someone changed them
                self._describe()
                return self._gather()
            of_layer, of_norm, buffers = layer._parameters, norm._parameters, norm._buffers
            if layer.dataflow is not None or layer.groups != 1 or layer.bias is not None:
                return None
            mine = (of_layer.get("weight"), of_norm.get("weight"), of_norm.get("bias"))
            for parameter in mine:
                if parameter is None:
                    return None
            statistics = (
                buffers["running_mean"], buffers["running_var"], buffers["num_batches_tracked"]
            )  # fmt: skip
            if statistics[0] is None or not norm.track_running_stats:
                return None
            parameters += mine
            running += statistics
        return tuple(parameters), tuple(running), training

    def _maps(
        self, x: SparseTensor, other: SparseTensor | None, features: Tensor, like: Any, least: int
    ) -> tuple[tuple[_C.Map, ...], Coordinates] | None:
        """The map of each link and the sites of the last one; None where what is added, or taken beside another value,
        lies on other sites or has other channels, or sites have fewer rows than `least`."""
        coords: list[Any] = [x.coords, None if other is None else other.coords]
        channels = [features.shape[1], 0 if other is None else other.features.shape[1]]
        maps: list[_C.Map] = []
        for index, link in enumerate(self.links):
            layer = link.convolution
            taken = channels[link.input]
            if link.second >= 0:
                taken += channels[link.second]
                here, beside = coords[link.input], coords[link.second]
                if not (here is beside or here.is_same(beside)):
                    return None
            if taken != layer.in_channels:
                return None
            if layer.window is not self.windows[index]:  # someone changed it
                self._describe()
                return self._maps(x, other, features, like, least)
            out = coords[link.input]
            same = self.same_map[index]
            if same < index and keeps_sites(layer):
                map = maps[same]
            else:
                on = SparseTensor._of(out, features)
                map, out = layer.find(on, like if index == 0 else None)
                if out.rows < least:
                    return None
                if maps and map.home != maps[0].home:  # sites of several streams wait for each other
                    return None
            if link.residual >= 0:
                added = coords[link.residual]
                if channels[link.residual] != layer.out_channels or not (
                    out is added or out.is_same(added)
                ):
                    return None
            maps.append(map)
            coords.append(out)
            channels.append(layer.out_channels)
        return tuple(maps), coords[-1]


class _ChainFunction(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        other: Tensor | None,
        code: Code,
        maps: tuple[_C.Map, ...],
        running: tuple[Tensor | None, ...],
        layouts: tuple[_C.WeightLayout | None, ...],
        *parameters: Tensor,
    ) -> Tensor:
        switches = modes.of(features)
        output, record = _C.chain_training(
            features, other, code.c, maps, parameters, layouts, running, *switches,
            features.requires_grad, other is not None and other.requires_grad,
        )  # fmt: skip
        # The output is the mask of a last ReLU; saved, so that autograd notices a write into it.
        mask = output if code.rows[-1][3] else None
        ctx.save_for_backward(features, other, record, mask, *parameters)
        ctx.call = (code, maps, layouts, switches)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
        if torch.is_grad_enabled() or modes.traced(grad_output):
            return _differentiable_gradients(ctx, grad_output)
        features, other, record, mask, *parameters = ctx.saved_tensors
        code, maps, layouts, switches = ctx.call
        of_features, of_other, *of_parameters = _C.chain_gradients(
            grad_output, mask, features, other, code.c, maps, tuple(parameters), layouts,
            record, *switches, *ctx.needs_input_grad[:2],
        )  # fmt: skip
        return of_features, of_other, None, None, None, None, *of_parameters


_apply = modes.function(_ChainFunction)


def _differentiable_gradients(ctx: Any, grad_output: Tensor) -> tuple[Any, ...]:
    """For second derivatives: runs the layers one by one, since each of them has such derivatives."""
    features, other, _, _, *parameters = ctx.saved_tensors
    code, maps, layouts, _ = ctx.call

    def again(features: Tensor, other: Any, *given: Tensor) -> Tensor:
        parameters = list(given)
        for link, layout in enumerate(layouts):
            if layout is not None:
                parameters[3 * link] = as_kernels_take_it(layout, given[3 * link])
        return one_by_one(code, features, other, maps, parameters)

    of_features, of_other, *of_parameters = gradients_of(
        again, (features, other, *parameters), grad_output
    )
    return of_features, of_other, None, None, None, None, *of_parameters


def as_kernels_take_it(layout: _C.WeightLayout, parameter: Tensor) -> Tensor:
    """[offsets, in, out], a view where that is possible."""
    weight = parameter.reshape(layout.shape).permute(layout.axes)
    return weight.reshape(-1, *weight.shape[-2:])


def one_by_one(
    code: Code,
    features: Tensor,
    other: Tensor | None,
    maps: tuple[_C.Map, ...],
    parameters: Sequence[Tensor],
) -> Tensor:
    """What a chain computes in training, without the running statistics."""
    values: list[Any] = [features, other]
    for index, (row, map, plans) in enumerate(zip(code.rows, maps, code.plans)):
        input, second, residual, relu, eps, _ = row
        weight, scale, shift = parameters[3 * index : 3 * index + 3]
        x = values[input]
        if second >= 0:
            x = torch.cat([x, values[second]], dim=1)
        convolved = ops.convolution(x, weight.to(x.dtype), map, plan=plans)
        values.append(
            ops.batch_norm(
                convolved, scale, shift, eps=eps, relu=relu,
                residual=None if residual < 0 else values[residual], count=map,
            )  # fmt: skip
        )
    return values[-1]
