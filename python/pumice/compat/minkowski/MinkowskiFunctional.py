"""torch.nn.functional on the features of tensors."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F

from .base import Tensor, check_kind

_NAMES = """threshold relu hardtanh relu6 elu selu celu leaky_relu prelu rrelu glu gelu logsigmoid hardshrink
tanhshrink softsign softplus softmin softmax softshrink gumbel_softmax log_softmax tanh sigmoid hardsigmoid
silu hardswish batch_norm normalize dropout alpha_dropout""".split()
_LOSSES = """binary_cross_entropy binary_cross_entropy_with_logits poisson_nll_loss cross_entropy
hinge_embedding_loss kl_div l1_loss mse_loss multilabel_margin_loss multilabel_soft_margin_loss
multi_margin_loss nll_loss smooth_l1_loss soft_margin_loss""".split()


def _on_features(name: str) -> Any:
    function = getattr(F, name)

    def apply(input: Any, *args: Any, **kwargs: Any) -> Any:
        check_kind("input", input, Tensor)
        return input._with(function(input.F, *args, **kwargs))

    apply.__name__ = name
    apply.__doc__ = f"torch.nn.functional.{name} of the features."
    return apply


def _loss(name: str) -> Any:
    function = getattr(F, name)

    def apply(input: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        check_kind("input", input, Tensor)
        return function(input.F, getattr(target, "F", target), *args, **kwargs)

    apply.__name__ = name
    apply.__doc__ = f"torch.nn.functional.{name} between features and a target."
    return apply


for _name in _NAMES:
    globals()[_name] = _on_features(_name)
for _name in _LOSSES:
    globals()[_name] = _loss(_name)


def linear(input: Any, *args: Any, **kwargs: Any) -> Any:
    check_kind("input", input, Tensor)
    return input._with(F.linear(input.F, *args, **kwargs))
