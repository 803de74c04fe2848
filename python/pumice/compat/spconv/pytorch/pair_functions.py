"""spconv's autograd Functions, which custom layers call with tables of pairs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from ....ops import modes
from ..core import ConvAlgo
from . import pair_pooling, pair_products


def _rounded(*tensors: Tensor) -> tuple[Tensor, ...]:
    """As autocast computes them."""
    dtype = modes.autocast_dtype(tensors[0])
    return tensors if dtype is None else tuple(tensor.to(dtype) for tensor in tensors)


class _PairConv(Function):
    """Through native pairs; options after `algo` are those of ops.indice_conv."""

    _inverse = False
    _subm = False

    @classmethod
    def _run(
        cls,
        ctx: Any,
        features: Tensor,
        filters: Tensor,
        indice_pairs: Tensor,
        indice_pair_num: Tensor,
        num_activate_out: int,
        algo: ConvAlgo,
        options: tuple[Any, ...],
    ) -> Tensor:
        ctx.types = features.dtype, filters.dtype
        features, filters = _rounded(features, filters)
        ctx.save_for_backward(indice_pairs, indice_pair_num, features, filters)
        return pair_products.indice_conv(
            features, filters, indice_pairs, indice_pair_num, num_activate_out, cls._inverse, cls._subm,
            algo, *options,
        )  # fmt: skip

    @classmethod
    def _run_back(cls, ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        indice_pairs, indice_pair_num, features, filters = ctx.saved_tensors
        din, dfilters = pair_products.indice_conv_backward(
            features, filters, grad, indice_pairs, indice_pair_num, cls._inverse, cls._subm
        )
        return din.to(ctx.types[0]), dfilters.to(ctx.types[1]), *[None] * 9


class SparseConvFunction(_PairConv):
    """features, filters, indice_pairs, indice_pair_num, num_activate_out, algo, timer, bias, act_alpha,
    act_beta, act_type. A bias or an activation is for inference: it has no gradient, as in spconv."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, filters: Tensor, indice_pairs: Tensor,
                indice_pair_num: Tensor, num_activate_out: int, algo: ConvAlgo,
                *options: Any) -> Tensor:  # fmt: skip
        return SparseConvFunction._run(
            ctx, features, filters, indice_pairs, indice_pair_num, num_activate_out, algo, options
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return SparseConvFunction._run_back(ctx, grad)[: len(ctx.needs_input_grad)]


class SparseInverseConvFunction(_PairConv):
    """SparseConvFunction from the outputs of the pairs to their inputs."""

    _inverse = True

    @staticmethod
    def forward(ctx: Any, features: Tensor, filters: Tensor, indice_pairs: Tensor,
                indice_pair_num: Tensor, num_activate_out: int, algo: ConvAlgo,
                *options: Any) -> Tensor:  # fmt: skip
        return SparseInverseConvFunction._run(
            ctx, features, filters, indice_pairs, indice_pair_num, num_activate_out, algo, options
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return SparseInverseConvFunction._run_back(ctx, grad)[: len(ctx.needs_input_grad)]


class SubMConvFunction(_PairConv):
    """SparseConvFunction through submanifold pairs."""

    _subm = True

    @staticmethod
    def forward(ctx: Any, features: Tensor, filters: Tensor, indice_pairs: Tensor,
                indice_pair_num: Tensor, num_activate_out: int, algo: ConvAlgo,
                *options: Any) -> Tensor:  # fmt: skip
        return SubMConvFunction._run(
            ctx, features, filters, indice_pairs, indice_pair_num, num_activate_out, algo, options
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        return SubMConvFunction._run_back(ctx, grad)[: len(ctx.needs_input_grad)]


class SparseImplicitGemmFunction(Function):
    """features, filters, pair_fwd, pair_bwd, their masks (2) and orders (2), num_activate_out, masks,
    is_train, is_subm, timer, fp32_accum, bias, act_alpha, act_beta, act_type."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, filters: Tensor, pair_fwd: Tensor, pair_bwd: Tensor,
                pair_mask_fwd_splits: Any, pair_mask_bwd_splits: Any, mask_argsort_fwd_splits: Any,
                mask_argsort_bwd_splits: Any, num_activate_out: int, masks: Any, is_train: bool,
                is_subm: bool, *options: Any) -> Tensor:  # fmt: skip
        ctx.types = features.dtype, filters.dtype
        features, filters = _rounded(features, filters)
        # Gradients need no masks of tiles, so none are made.
        out, _, _ = pair_products.implicit_gemm(
            features, filters, pair_fwd, pair_mask_fwd_splits, mask_argsort_fwd_splits,
            num_activate_out, masks, False, is_subm, *options,
        )  # fmt: skip
        ctx.save_for_backward(features, filters, pair_fwd, pair_bwd)
        ctx.is_subm = is_subm
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        features, filters, pair_fwd, pair_bwd = ctx.saved_tensors
        din, dfilters = pair_products.implicit_gemm_backward(
            features, filters, grad, pair_fwd, pair_bwd, [], [], [], [], None, [],
            pair_products.MASK_WIDTH, ctx.is_subm,
        )  # fmt: skip
        rest = [None] * (len(ctx.needs_input_grad) - 2)
        return din.to(ctx.types[0]), dfilters.to(ctx.types[1]), *rest


class SparseMaxPoolFunction(Function):
    """features, indice_pairs, indice_pair_num, num_activate_out."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, indice_pairs: Tensor, indice_pair_num: Tensor,
                num_activate_out: int) -> Tensor:  # fmt: skip
        out = pair_pooling.indice_maxpool(
            features, indice_pairs, indice_pair_num, num_activate_out
        )
        ctx.save_for_backward(indice_pairs, indice_pair_num, features, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        indice_pairs, indice_pair_num, features, out = ctx.saved_tensors
        din = pair_pooling.indice_maxpool_backward(
            features, out, grad, indice_pairs, indice_pair_num
        )
        return din, None, None, None


class SparseMaxPoolImplicitGemmFunction(Function):
    """features, indice_pairs_fwd, indice_pairs_bwd, num_activate_out."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, indice_pairs_fwd: Tensor, indice_pairs_bwd: Tensor,
                num_activate_out: int) -> Tensor:  # fmt: skip
        out = pair_pooling.indice_maxpool_implicit_gemm(
            features, indice_pairs_fwd, num_activate_out
        )
        ctx.save_for_backward(indice_pairs_bwd, features, out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        pairs, features, out = ctx.saved_tensors
        din = pair_pooling.indice_maxpool_implicit_gemm_backward(features, out, grad, pairs)
        return din, None, None, None


class SparseAvgPoolImplicitGemmFunction(Function):
    """features, indice_pairs_fwd, indice_pairs_bwd, num_activate_out, calc_count, which a gradient needs."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, indice_pairs_fwd: Tensor, indice_pairs_bwd: Tensor,
                num_activate_out: int, calc_count: bool) -> Tensor:  # fmt: skip
        out, count = pair_pooling.indice_avgpool_implicit_gemm(
            features, indice_pairs_fwd, num_activate_out, calc_count
        )
        ctx.save_for_backward(indice_pairs_bwd, count)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        pairs, count = ctx.saved_tensors
        din = pair_pooling.indice_avgpool_implicit_gemm_backward(grad, pairs, count)
        return din, None, None, None, None


indice_conv = SparseConvFunction.apply
indice_inverse_conv = SparseInverseConvFunction.apply
indice_subm_conv = SubMConvFunction.apply
implicit_gemm = SparseImplicitGemmFunction.apply
indice_maxpool = SparseMaxPoolFunction.apply
indice_maxpool_implicit_gemm = SparseMaxPoolImplicitGemmFunction.apply
indice_avgpool_implicit_gemm = SparseAvgPoolImplicitGemmFunction.apply
