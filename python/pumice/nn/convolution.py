"""Defines the base class of all convolution layers: it has a window and a weight; its subclasses find the map."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from torch import Tensor

from .. import _C, ops
from .._checks import kind_of
from .._sites import NO_TRACING
from .._where import explained, not_sparse
from ..coords import Coordinates
from ..ops.plans import DIRECTIONS, Plan, as_plans, check_dataflow, refuse_both
from ..tensor import SparseTensor
from ..window import Numbers, Window, per_axis
from .fan_in import know_weight_of
from .kept import Kept


class Convolution(torch.nn.Module):
    """The base of all convolution layers: `weight` [K, in / groups, out], offsets in lexicographic order (last
    axis fastest), nothing flipped; `bias` [out]. A layer of your own gives the constructor a window and overrides
    `find`, which returns the map.

    Groups: channels [g · in / groups, …) of the input make channels [g · out / groups, …) of the
    output.

    Args:
        dimension: D, the number of axes, 1 to 4.
        in_channels: channels of the features that go in.
        out_channels: channels of those that come out.
        window: the kernel's size, stride, padding and dilation on every axis.
        groups: a divisor of both numbers of channels.
        bias: whether a number is added to each channel.
        dataflow: forces "implicit_gemm", "fetch_on_demand" or "gather_gemm_scatter".
        device: where the parameters are made.
        dtype: their type.
        plan: how it runs, instead of a dataflow: a `Plan` of the forward pass, or a mapping of "forward",
            "input_gradient" and "weight_gradient" to plans. The attribute `plan` may be changed later.
    Returns:
        Of a call with a sparse tensor [N, in_channels], one [M, out_channels]; `like` names the sites to
        go to, where a layer can be told.
    Raises:
        UserError: channels, axes or types that do not fit, with the layer's path in the network.
    Waits:
        A GPU is waited for where a layer makes sites, once a set of sites and window, not on known maps.
    Example:
        >>> layer: nn.Convolution = nn.SubMConv3d(4, 8, 3)
        >>> tuple(layer.weight.shape), layer.window.volume
        ((27, 4, 8), 27)
    """

    def __init__(
        self,
        dimension: int,
        in_channels: int,
        out_channels: int,
        window: Window,
        groups: int = 1,
        bias: bool = True,
        dataflow: str | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        plan: Plan | None = None,
    ) -> None:
        """The arguments are those of the class."""
        super().__init__()
        check_channels(in_channels, out_channels, groups)
        if isinstance(bias, str):
            raise _C.UserError(f"bias = {bias!r}: give True or False")
        if isinstance(dtype, torch.dtype) and not dtype.is_floating_point:
            raise _C.UserError(f"dtype = {dtype}: weights have a floating type, as torch.float32")
        self.dimension = dimension
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.groups = groups
        self.window = window
        check_dataflow(dataflow)
        self.dataflow = dataflow
        refuse_both(plan, dataflow)
        self.plan = plan
        shape = (window.volume, in_channels // groups, out_channels)
        self.weight = torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        self.bias = (
            torch.nn.Parameter(torch.empty(out_channels, device=device, dtype=dtype))
            if bias
            else None
        )
        self._kept = Kept()
        know_weight_of(self)
        self.reset_parameters()

    # Of layers that were pickled before there were plans.
    _plans: _C.Plans | None = None
    _plan_text: str | None = None

    @property
    def plan(self) -> _C.Plan | dict[str, _C.Plan] | None:
        """How it runs where the planner does not choose: the plan of the forward pass if that is the only one, else
        a mapping of "forward", "input_gradient" and "weight_gradient" to those that there are. A change holds from
        the next call on."""
        plans = self._plans
        if plans is None:
            return None
        given = {name: plan for name in DIRECTIONS if (plan := getattr(plans, name)) is not None}
        return plans.forward if list(given) == ["forward"] else given

    @plan.setter
    def plan(self, plan: Plan | None) -> None:
        self._plans = plans = as_plans(plan)
        # What a graph carries: a compiler cannot look into an object of the extension.
        self._plan_text = None if plans is None else plans.text

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        know_weight_of(self)  # of a copy, or one that was loaded

    def reset_parameters(self) -> None:
        """Uniform in ±1/sqrt(fan_in), fan_in = K · in / groups, as torch.nn.Conv3d."""
        fan_in = self.weight.shape[0] * self.weight.shape[1]
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0.0
        torch.nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            torch.nn.init.uniform_(self.bias, -bound, bound)

    def find(self, x: SparseTensor, like: Any) -> tuple[ops.Map, Coordinates]:
        """The map from the sites of `x`, and the sites it leads to."""
        raise NotImplementedError

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor, like: SparseTensor | Coordinates | None = None) -> SparseTensor: ...

    def forward(self, x: SparseTensor, like: Any = None) -> SparseTensor:
        """[N, in_channels] to [M, out_channels], on the sites that `find` leads to."""
        try:
            features = x.features
            if features.shape[1] != self.in_channels:
                raise _C.UserError(
                    f"features have {features.shape[1]} channels, the layer takes {self.in_channels}"
                )
            map, coords = self.find(x, like)
            # Taken from the dictionary, since finding them as attributes takes longer.
            parameters = self._parameters
            weight = parameters.get("weight")
            if weight is None:  # a parametrised weight is another tensor at each call
                weight, kept = self.weight, None
            elif self.training:
                kept = None
            else:
                kept = self._kept.packed if self._kept.frozen else None
            bias = parameters["bias"] if "bias" in parameters else self.bias
            plan: Any = self._plans
            if plan is not None and torch.compiler.is_compiling():
                plan = self._plan_text
            result = ops.convolution(
                features, weight, map, bias, self.groups, kept, self.dataflow, plan
            )
            return SparseTensor._of(coords, result)
        except (AttributeError, ValueError, RuntimeError) as error:
            if not isinstance(x, SparseTensor):
                raise not_sparse(self, x) from None
            better = explained(error)
            if better is error:
                raise
            raise better from None

    def __prepare_scriptable__(self) -> NoReturn:
        raise _C.UserError(NO_TRACING)  # which torch.jit.script asks for first

    def dense_weight(self) -> Tensor:
        """The weight as torch.nn.ConvNd has it: [out, in / groups, size…]."""
        axes = self.window.numbers[0]
        size = self.window.parts[0]
        shaped = self.weight.reshape(*size, *self.weight.shape[1:])
        return shaped.permute(axes + 1, axes, *range(axes))

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, {self.window}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        return text if self.bias is not None else text + ", bias=False"


def check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    """Raises UserError where no layer can have these channels and groups."""
    for name, value in (("in_channels", in_channels), ("out_channels", out_channels), ("groups", groups)):
        if not hasattr(value, "__index__"):
            raise _C.UserError(f"{name} = {value!r}: give a whole number")
    if in_channels < 1 or out_channels < 1:
        raise _C.UserError(
            f"in_channels = {in_channels}, out_channels = {out_channels}: give at least 1"
        )
    if groups < 1 or in_channels % groups != 0 or out_channels % groups != 0:
        raise _C.UserError(
            f"groups = {groups} does not divide in_channels = {in_channels} and "
            f"out_channels = {out_channels}: choose a divisor of both"
        )


def sites_in(layer: Convolution, x: SparseTensor, like: Any = None) -> Coordinates:
    """Those of the input. Raises UserError where `find` of the layer got something else than a sparse tensor, or a
    `like` that it has no use for."""
    if not isinstance(x, SparseTensor):
        raise not_sparse(layer, x)
    if like is not None:
        sites_of(like)
        raise _C.UserError(
            f"{type(layer).__name__} finds the sites of its result itself, and got like = {kind_of(like)}: leave it out; "
            "ConvTranspose3d and InverseConv3d go to given sites"
        )
    return x.coords


def sites_of(like: SparseTensor | Coordinates | None) -> Coordinates | None:
    """The sites that `like` names: its own, or those of a sparse tensor."""
    if like is not None and not isinstance(like, (SparseTensor, Coordinates)):
        raise _C.UserError(
            f"like is {kind_of(like)}: give the sparse tensor, or the Coordinates, to go to"
        )
    return like.coords if isinstance(like, SparseTensor) else like


def make_window(
    dimension: int,
    kernel_size: Numbers,
    stride: Numbers,
    padding: Numbers,
    dilation: Numbers,
) -> Window:
    """A window from one number for all axes, or one for each. Raises UserError for other counts, and for a padding
    below 0."""
    sizes = per_axis(kernel_size, dimension, "kernel_size")
    if min(sizes) < 1:
        raise _C.UserError(f"kernel_size = {kernel_size}: give at least 1")
    paddings = per_axis(padding, dimension, "padding")
    if min(paddings) < 0:
        raise _C.UserError(f"padding = {padding}: give at least 0; pumice.ops.prune crops sites")
    return Window(
        sizes,
        per_axis(stride, dimension, "stride"),
        paddings,
        per_axis(dilation, dimension, "dilation"),
    )


def no_indice_key(name: str, indice_key: Any) -> None:
    """Raises UserError where a map is given a name, as layers of spconv do."""
    if indice_key is not None:
        raise _C.UserError(
            f"{name}: indice_key = {indice_key!r}: leave it out; layers on the same sites share their map without "
            "a name, and InverseConv goes back by the sites themselves (pumice.compat.spconv takes keys)"
        )
