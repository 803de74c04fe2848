"""Defines norms: over all rows, over the channels of a row, and over the rows of each batch item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from .. import _C, ops
from .._checks import check_eps, kind_of, whole_number
from .._where import explained, not_sparse
from ..coords import Coordinates
from ..ops.counted import instance_norm, is_counted, layer_norm
from ..ops.pooling import spread_items
from ..tensor import SparseTensor
from .described import described


@described
class BatchNorm(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d of the features. A batch without rows stays as it is.

    norm(x, residual, relu) is relu(norm(x) + residual) in one pass; `residual` are features [N, C].

    Args:
        num_features: C, channels of the features.
        eps: is added to the variance.
        momentum: share of a new batch in the running statistics; None: the mean of all batches.
        affine: whether scale and shift of each channel are learnt.
        track_running_stats: whether there are running statistics, for evaluation.
        bias: whether there is a shift, where PyTorch's norm takes the argument.
        device: where parameters and statistics are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, C], one [N, C] on the same sites.
    Raises:
        UserError: other channels, with the layer's path in the network.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.BatchNorm(4)(x).shape
        torch.Size([2, 4])
    """

    _channels: tuple[str, ...] = ("num_features",)

    def _check_arguments(self) -> None:
        check_eps(self.eps)

    if TYPE_CHECKING:

        def __call__(
            self, x: SparseTensor, residual: torch.Tensor | None = None, relu: bool = False
        ) -> SparseTensor: ...

    def forward(
        self, x: SparseTensor, residual: torch.Tensor | None = None, relu: bool = False
    ) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        try:
            return SparseTensor._of(x.coords, batch_norm(self, x.features, residual, relu, x.coords))
        except (AttributeError, ValueError, RuntimeError) as error:
            if not isinstance(x, SparseTensor):
                raise not_sparse(self, x) from None
            better = explained(error)
            if better is error:
                raise
            raise better from None


def batch_norm(
    norm: torch.nn.BatchNorm1d,
    features: torch.Tensor,
    residual: torch.Tensor | None = None,
    relu: bool = False,
    coords: Coordinates | None = None,
) -> torch.Tensor:
    """relu(norm(features) + residual), running statistics as torch.nn.BatchNorm1d keeps them. `coords`: the sites of
    the rows, of which there may be fewer than there is room for; None: all are in use."""
    buffers, parameters = norm._buffers, norm._parameters
    training = norm.training
    momentum = norm.momentum
    mean, variance = buffers["running_mean"], buffers["running_var"]
    batches = None
    if training and norm.track_running_stats:
        if torch.compiler.is_compiling():
            if momentum is None:
                return _with_mean_of_all(norm, features, residual, relu)
            _count(norm, features)
        elif features.size(0) > 0:
            count = buffers["num_batches_tracked"]
            if momentum is not None:
                batches = count
            elif count is not None:  # a mean of all batches
                count.add_(1)
                momentum = 1.0 / float(count)
    of_batch = training or mean is None or variance is None
    if training and not norm.track_running_stats:
        mean = variance = None
    return ops.batch_norm(
        features,
        parameters["weight"] if "weight" in parameters else norm.weight,  # a parametrised one
        parameters["bias"] if "bias" in parameters else norm.bias,
        mean,
        variance,
        of_batch,
        0.0 if momentum is None else momentum,
        norm.eps,
        residual,
        relu,
        batches,
        coords,
    )


def _count(norm: torch.nn.BatchNorm1d, features: torch.Tensor) -> None:
    """Counts one more batch, unless it has no rows, in a way that a graph can hold."""
    count = norm._buffers["num_batches_tracked"]
    if count is not None:
        count.add_(min(features.size(0), 1))


def _with_mean_of_all(
    norm: torch.nn.BatchNorm1d,
    features: torch.Tensor,
    residual: torch.Tensor | None,
    relu: bool,
) -> torch.Tensor:
    """The norm of momentum=None in a graph, where the share of the new batch is a tensor and no number."""
    _count(norm, features)
    buffers, parameters = norm._buffers, norm._parameters
    running = [buffers["running_mean"], buffers["running_var"]]
    last = [value.clone() for value in running]
    output = ops.batch_norm(
        features, parameters["weight"], parameters["bias"], *last, True, 1.0, norm.eps, residual, relu
    )
    share = 1 / buffers["num_batches_tracked"].clamp(min=1)
    with torch.no_grad():
        for value, of_batch in zip(running, last):
            value.lerp_(of_batch, share.to(value.dtype))
    return output


class SyncBatchNorm(torch.nn.BatchNorm1d):
    """torch.nn.BatchNorm1d of the features, with statistics over all rows of all processes, which
    may have different numbers of them, and none. On GPUs and on the CPU.

    PyTorch's own SyncBatchNorm works on GPUs alone.

    Args:
        num_features: C, channels of the features.
        eps: is added to the variance.
        momentum: share of a new batch in the running statistics; None: the mean of all batches.
        affine: whether scale and shift of each channel are learnt.
        track_running_stats: whether there are running statistics, for evaluation.
        process_group: the processes that share statistics; default: all.
    Returns:
        Of a call with a sparse tensor [N, C], one [N, C] on the same sites.
    Raises:
        UserError: other channels, with the layer's path in the network.
    Waits:
        For the other processes.
    Example:
        >>> net = nn.SyncBatchNorm.convert(nn.Sequential(nn.SubMConv3d(4, 8, 3), nn.BatchNorm(8)))
        >>> type(net[1]).__name__
        'SyncBatchNorm'
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
    ) -> None:
        """The arguments are those of the class."""
        num_features = whole_number("num_features", num_features, 1)
        super().__init__(num_features, eps, momentum, affine, track_running_stats)
        check_eps(eps)
        self.process_group = process_group

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        distributed = torch.distributed.is_available() and torch.distributed.is_initialized()
        if distributed and (self.training or not self.track_running_stats):
            if is_counted(x.coords):
                raise _C.UserError(
                    "SyncBatchNorm goes over all rows, and only the device knows how many sites are in use: train "
                    "such networks with BatchNorm, or call this one eagerly"
                )
            return SparseTensor._of(x.coords, self._over_processes(x.features))
        return SparseTensor._of(x.coords, batch_norm(self, x.features, coords=x.coords))

    def _over_processes(self, features: torch.Tensor) -> torch.Tensor:
        wide = features if features.dtype == torch.float64 else features.float()
        rows = wide.new_full((1,), wide.shape[0])
        total = _sum_over_processes(torch.cat([wide.sum(0), rows]), self.process_group)
        count = total[-1].clamp(min=1)
        mean = total[:-1] / count
        centred = wide - mean
        squares = _sum_over_processes(centred.square().sum(0), self.process_group)
        variance = squares / count
        if self.training and self.track_running_stats:
            self._update_running(mean, variance, count)
        result = centred * torch.rsqrt(variance + self.eps)
        if self.affine:
            result = result * self.weight + self.bias
        return result.to(features.dtype)

    @torch.no_grad()
    def _update_running(
        self, mean: torch.Tensor, variance: torch.Tensor, count: torch.Tensor
    ) -> None:
        self.num_batches_tracked += 1
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / float(self.num_batches_tracked)
        unbiased = variance * count / (count - 1).clamp(min=1)
        self.running_mean.lerp_(mean.to(self.running_mean.dtype), momentum)
        self.running_var.lerp_(unbiased.to(self.running_var.dtype), momentum)

    @classmethod
    def convert(
        cls, module: torch.nn.Module, process_group: Any = None
    ) -> torch.nn.Module:
        """Replaces every batch norm of a network of sparse tensors, as
        torch.nn.SyncBatchNorm.convert_sync_batchnorm does for dense ones."""
        if not isinstance(module, torch.nn.Module):
            raise _C.UserError(f"module is {kind_of(module)}: give a network")
        if isinstance(module, BatchNorm):
            synchronised = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            synchronised._parameters = module._parameters
            synchronised._buffers = module._buffers
            return synchronised.train(module.training)
        for name, child in module.named_children():
            setattr(module, name, cls.convert(child, process_group))
        return module


def _sum_over_processes(values: torch.Tensor, group: Any) -> torch.Tensor:
    # The operator in eager calls too: an autograd.Function that writes in place, as a collective does,
    # has gradients of 0 in graphs of PyTorch 2.11.
    return torch.ops.pumice.sum_over_processes(values, "" if group is None else group.group_name)


@described
class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm over the channels of each row.

    Args:
        normalized_shape: C, channels of the features.
        eps: is added to the variance.
        elementwise_affine: whether scale and shift of each channel are learnt.
        bias: whether there is a shift.
        device: where the parameters are made.
        dtype: their type.
    Returns:
        Of a call with a sparse tensor [N, C], one [N, C] on the same sites.
    Raises:
        RuntimeError: PyTorch's, for other channels.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.LayerNorm(4)(x).features[0]
        tensor([0., 0., 0., 0.], grad_fn=<SelectBackward0>)
    """

    _channels = ("normalized_shape",)

    def _check_arguments(self) -> None:
        check_eps(self.eps)

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        if is_counted(x.coords):
            made = layer_norm(x.features, self.weight, self.bias, self.eps, x.coords)
            return SparseTensor._of(x.coords, made)
        return SparseTensor._of(x.coords, super().forward(x.features))


class InstanceNorm(torch.nn.Module):
    """Normalises every channel over the rows of each batch item (biased variance).

    Args:
        channels: C, channels of the features.
        eps: is added to the variance.
        affine: whether scale and shift of each channel are learnt.
    Returns:
        Of a call with a sparse tensor [N, C], one [N, C] on the same sites.
    Raises:
        RuntimeError: PyTorch's, for other channels.
    Waits:
        Never.
    Example:
        >>> x = pumice.SparseTensor(torch.tensor([[0, 1, 2, 3], [0, 1, 2, 4]]), torch.ones(2, 4))
        >>> nn.InstanceNorm(4)(x).shape
        torch.Size([2, 4])
    """

    def __init__(self, channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        """The arguments are those of the class."""
        super().__init__()
        channels = whole_number("channels", channels, 1)
        check_eps(eps)
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(channels)) if affine else None
        self.bias = torch.nn.Parameter(torch.zeros(channels)) if affine else None

    if TYPE_CHECKING:

        def __call__(self, x: SparseTensor) -> SparseTensor: ...

    def forward(self, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        if not isinstance(x, SparseTensor):
            raise not_sparse(self, x)
        if is_counted(x.coords):
            made = instance_norm(x.features, x.coords, self.weight, self.bias, self.eps)
            return SparseTensor._of(x.coords, made)
        # In float32 at least, since a sum of many numbers in half precision is wrong.
        features = x.features.float() if x.features.dtype.itemsize < 4 else x.features
        mean = ops.global_pool(features, x.coords, "average")
        centred = features - spread_items(mean, x.coords)
        variance = ops.global_pool(centred * centred, x.coords, "average")
        result = centred * spread_items(torch.rsqrt(variance + self.eps), x.coords)
        if self.weight is not None:
            result = result * self.weight + self.bias
        return SparseTensor._of(x.coords, result.to(x.features.dtype))
