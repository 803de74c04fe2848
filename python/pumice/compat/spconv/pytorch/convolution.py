"""Convolution with spconv's parameters: `weight` [out, *kernel, in / groups], `bias` [out]."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from .... import _C, ops
from ....nn import deferred
from ....nn.convolution import check_channels
from ....nn.fused import has_hooks, is_watched
from ....ops import modes
from ....window import Window
from ...foreign import ForeignWeight, PeerAssertionError
from .. import constants
from ..core import ConvAlgo
from ..cumm.tensorview import gemm
from .activate import activate
from .core import SparseConvTensor, check_same_sites, expand_nd
from .find import Found, find, is_pointwise, shared
from .layouts import to_krsc
from .timing import Stopwatch
from .windowed import Numbers, WindowedModule

_NO_ACTIVATION = gemm.Activation.None_
_Parameter = torch.nn.Parameter
_learns_now = torch.is_grad_enabled


class SparseConvolution(WindowedModule):
    """The base of all convolution layers.

    `subm`: outputs are the inputs, and stride and padding are ignored. `transposed`: onto every
    finer site it reaches. `inverse`: back to where the layer of the same `indice_key` came from.
    `algo`, `fp32_accum` and `large_kernel_fast_algo` are taken and change nothing: sums are kept in
    float32 always. `act_type` is applied last, after `add_input`.

    A 1×1 layer of stride 1 reads the memory of its weight as [in, out], as spconv does.
    """

    _benchmark_type = "SparseConvolution"

    def __init__(
        self,
        ndim: int,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers = 3,
        stride: Numbers = 1,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        subm: bool = False,
        output_padding: Numbers = 0,
        transposed: bool = False,
        inverse: bool = False,
        indice_key: str | None = None,
        algo: ConvAlgo | None = None,
        fp32_accum: bool | None = None,
        record_voxel_count: bool = False,
        act_type: gemm.Activation = gemm.Activation.None_,
        act_alpha: float = 0,
        act_beta: float = 0,
        large_kernel_fast_algo: bool = False,
        name: str | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        # The base asks for them.
        behind = expand_nd(ndim, output_padding, "output_padding")
        self.__dict__.update(inverse=inverse, transposed=transposed, output_padding=behind)
        self._offsets_of_mask = 128 if large_kernel_fast_algo else 32
        super().__init__(
            ndim, kernel_size, stride, padding, dilation, indice_key, subm, algo,
            record_voxel_count, name, device,
        )  # fmt: skip
        check_channels(in_channels, out_channels, groups)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.groups = groups
        self.fp32_accum = fp32_accum
        self.act_type, self.act_alpha, self.act_beta = act_type, act_alpha, act_beta
        self.conv1x1 = is_pointwise(self)
        if groups != 1 and constants.REFUSE_AS_SPCONV:
            raise PeerAssertionError(f"groups = {groups}: spconv takes 1")
        if self.conv1x1 and not subm and any(self.padding):
            raise PeerAssertionError(f"padding = {self.padding}: a 1×1 layer of stride 1 takes 0")
        if self.conv1x1 and groups != 1:
            raise _C.UserError(f"groups = {groups}: a 1×1 layer of stride 1 takes 1")
        self.weight_shape = [out_channels, *self.kernel_size, in_channels // groups]
        self.weight = torch.nn.Parameter(torch.empty(self.weight_shape, device=device, dtype=dtype))
        if bias:
            self.bias = torch.nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self._kept = ForeignWeight("spconv", self.kernel_size, strided=not self.conv1x1)
        self.reset_parameters()
        self._register_load_state_dict_pre_hook(self._load_weight_different_layout)

    def reset_parameters(self) -> None:
        """Uniform in ±1/sqrt(fan_in), fan_in = K · in / groups."""
        bound = 1 / math.sqrt(math.prod(self.weight_shape[1:]))
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -bound, bound)

    def is_inverseable(self) -> bool:
        return self.indice_key is not None and not self.subm

    def forward(
        self, input: SparseConvTensor, add_input: SparseConvTensor | None = None
    ) -> SparseConvTensor:
        if not isinstance(input, SparseConvTensor):
            raise self._not_sparse(input)
        if len(input.spatial_shape) != self.ndim:
            self._check_dimension(input)
        use = None
        if add_input is None and self._can_be_linked(input):
            use = self._kept.habit.of(self.training, _learns_now())
            if use.known is deferred.NORM:
                output = self._deferred(input, use)
                if output is not None:
                    return output
            if use.known is not None:
                use = None
        features = input.computed()
        if constants.EVAL_IGNORES_AUTOCAST and self._leaves_autocast(features):
            with torch.autocast(features.device.type, enabled=False):
                return self.forward(input, add_input)
        stopwatch = Stopwatch(self, input) if input.benchmark else None
        if features.shape[1] != self.in_channels:
            raise PeerAssertionError(
                f"{self.describe()}: features have {features.shape[1]} channels, the layer takes "
                f"{self.in_channels}"
            )
        if features.dtype != self.weight.dtype and modes.autocast_dtype(features) is None:
            features = features.to(torch.promote_types(features.dtype, self.weight.dtype))
        if self.conv1x1:
            output = input.replace_feature(self._multiply(input, features))
            output._use = use
        else:
            if constants.REFUSE_AS_SPCONV:
                self._check_rows(input)
            found = find(self, input)
            if stopwatch is not None:
                stopwatch.lap("indice_gen_time")
            weight, packed = self._kept.operands(self.weight, self.training)
            result = ops.convolution(
                features, weight, found.map, self.bias, self.groups, packed
            )
            output = found.output(input, result)
            output._use = use
            self._count_voxels(result.shape[0])
            if stopwatch is not None:
                stopwatch.stop(result.shape[0])
        if add_input is not None:
            if constants.REFUSE_AS_SPCONV:
                self._check_added()
            check_same_sites(self.describe(), [output, add_input])
            output = output.replace_feature(output.features + add_input.features)
        if self.act_type is not gemm.Activation.None_:
            output = output.replace_feature(
                activate(output.features, self.act_type, self.act_alpha)
            )
        return output

    def run_with(
        self, input: SparseConvTensor, norm: torch.nn.BatchNorm1d, relu: bool
    ) -> SparseConvTensor | None:
        """This, a batch norm and a ReLU, for a container in which they follow each other; None where it has to
        call them."""
        output = _C.waiting_convolution(self, input, norm, relu)
        if output is not None:
            return output
        if (
            type(self).forward is not SparseConvolution.forward
            or is_watched(self)
            or is_watched(norm)
            or len(input.spatial_shape) != self.ndim
            or not self._can_be_linked(input)
        ):
            return None
        kind = deferred.RELU if relu else deferred.NORM
        return self._deferred(
            input, self._kept.habit.of(self.training, _learns_now(), kind), norm, relu
        )

    def _can_be_linked(self, input: SparseConvTensor) -> bool:
        """Whether this can be a link of a chain, for all that its arguments say."""
        parameters = self._parameters
        return (
            parameters.get("bias") is None
            and type(parameters.get("weight")) is _Parameter
            and self.groups == 1
            and self.act_type is _NO_ACTIVATION
            and not input.benchmark
            and not has_hooks(self)
            and deferred.can_wait(input._features)
        )

    def _deferred(
        self,
        input: SparseConvTensor,
        use: deferred.Use,
        norm: torch.nn.BatchNorm1d | None = None,
        relu: bool = False,
    ) -> SparseConvTensor | None:
        """The output, which is computed later; None where the layer has to compute now."""
        held = input._features
        weight = self._parameters["weight"]
        if (
            held.shape[1] != self.in_channels
            or (held.dtype is not weight.dtype and modes.autocast_dtype(held) is None)
            or constants.EVAL_IGNORES_AUTOCAST
            or constants.REFUSE_AS_SPCONV
        ):
            return None
        found = None
        kept = shared(self, input)
        if kept is not None:
            source = deferred.source_of(held)
            map = kept.map
        elif self.conv1x1:
            coords = input._known_coords()
            if self.inverse or coords is None:  # as a matrix product it takes rows that are no sites, too
                return None
            source = deferred.source_of(held)
            map = ops.submanifold_map(coords, self._pointwise_window())
        else:
            # Layers that change sites begin a chain: what leads to them is needed elsewhere more often than
            # not, and a device has something to do while sites are counted.
            source = deferred.source_of(held) if self.subm else input.computed()
            found = find(self, input)
            map = found.map
        given = None if norm is None else deferred.norm_of(norm, map.out_rows, self.out_channels)
        if norm is not None and given is None:
            return None
        features = deferred.wait(
            source, weight, self._kept, self.training, self.out_channels, map, use, given, relu
        )
        if self.record_voxel_count and not self.conv1x1:
            self._count_voxels(map.out_rows)
        return input._holding(features) if found is None else found.output(input, features)

    def _pointwise_window(self) -> Window:
        return Window.centred(self.kernel_size, self.dilation)

    def _leaves_autocast(self, features: Tensor) -> bool:
        return (
            not self.training
            and not self.conv1x1
            and self.algo is not ConvAlgo.Native
            and modes.autocast_dtype(features) is not None
        )

    def _check_added(self) -> None:
        if not self.training and self.algo is not ConvAlgo.Native:
            raise PeerAssertionError(
                f"{self.describe()}: spconv takes add_input in evaluation for int8 only: add it "
                "afterwards"
            )

    def _benchmark_params(self, x: SparseConvTensor) -> dict[str, Any]:
        return {
            **super()._benchmark_params(x),
            "output_padding": self.output_padding,
            "subm": self.subm,
            "transposed": self.transposed,
            "input_channels": self.in_channels,
            "out_channels": self.out_channels,
        }

    def _multiply(self, input: SparseConvTensor, features: Tensor) -> Tensor:
        kept = input.find_indice_pair(self.indice_key) if self.inverse else None
        if kept is not None and any(step != 1 for step in kept.stride):
            raise _C.UserError(
                f"{self.describe()}: a 1×1 layer stays on its sites, and does not undo the stride "
                f"{kept.stride} of indice_key {self.indice_key!r}: give both a larger kernel_size"
            )
        weight = self.weight.reshape(self.in_channels, self.out_channels)
        return torch.nn.functional.linear(features, weight.t(), self.bias)

    def _load_weight_different_layout(
        self, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any], *_: Any
    ) -> None:
        count = prefix + "max_num_voxels_during_training"
        if self._counts_voxels() and count not in state_dict:
            state_dict[count] = torch.zeros(1, dtype=torch.int32)
        # Code that converts weights itself, as mmdetection3d does, is left to it.
        own = type(self)._load_from_state_dict is torch.nn.Module._load_from_state_dict
        key = prefix + "weight"
        if not own or key not in state_dict or local_metadata.get("version") == self._version:
            return
        state_dict[key] = to_krsc(
            key, state_dict[key], self.weight_shape, constants.SAVED_WEIGHT_LAYOUT, self.conv1x1
        )

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {super().extra_repr()}"
        text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        text += f", algo={self.algo}"
        return text if self.act_type is gemm.Activation.None_ else text + f", act={self.act_type}"


def _look_up(layer: SparseConvolution, x: SparseConvTensor) -> tuple[Any, Found | None] | None:
    """(the map that a layer works through, what makes its output where that is more than other features); None where it
    has to compute now."""
    if not layer.conv1x1:
        found = find(layer, x)
        return found.map, found
    coords = x._known_coords()
    if layer.inverse or coords is None:  # as a matrix product it takes rows that are no sites, too
        return None
    window = layer.window if layer.subm else layer._pointwise_window()
    return ops.submanifold_map(coords, window), None


_C.equip_convolution(SparseConvolution)
_C.connect_recorder({
    "convolution_forward": SparseConvolution.forward,
    "no_activation": _NO_ACTIVATION,
    "look_up": _look_up,
})  # fmt: skip
