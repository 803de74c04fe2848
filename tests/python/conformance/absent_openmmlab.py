"""The parts of mmcv, mmengine and mmdet that the networks build themselves from: one registry under all its names,
layers by their names in a configuration, and the residual blocks that sparse blocks inherit from.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

Config = dict[str, Any]


class Registry:
    """Keeps classes by name, and makes one from a configuration with `type`."""

    def __init__(self) -> None:
        self.kinds: dict[str, Any] = {}

    def register_module(self, *given: Any, **named: Any) -> Any:
        if given and isinstance(given[0], type):
            self.kinds[given[0].__name__] = given[0]
            return given[0]
        name = named.get("name") or (given[0] if given else None)

        def keep(kind: Any) -> Any:
            self.kinds[name if isinstance(name, str) else kind.__name__] = kind
            return kind

        return keep

    def _register_module(self, module: Any, module_name: Any = None, force: bool = False) -> None:
        names = [module_name] if isinstance(module_name, str) else module_name or [module.__name__]
        self.kinds.update(dict.fromkeys(names, module))

    def build(self, config: Config, *given: Any, **named: Any) -> Any:
        rest = dict(config)
        name = rest.pop("type").split(".")[-1]
        if name not in self.kinds:
            raise KeyError(f"type={name!r} is not registered; import the module that defines it, or stand in for it")
        return self.kinds[name](*given, **named, **rest)


REGISTRY = Registry()
REGISTRY.kinds.update(
    BN=nn.BatchNorm2d, BN1d=nn.BatchNorm1d, BN2d=nn.BatchNorm2d, BN3d=nn.BatchNorm3d, LN=nn.LayerNorm,
    Conv1d=nn.Conv1d, Conv2d=nn.Conv2d, Conv3d=nn.Conv3d, deconv=nn.ConvTranspose2d, ReLU=nn.ReLU, GELU=nn.GELU,
)  # fmt: skip


class BaseModule(nn.Module):
    """mmengine's, which only initialises weights."""

    def __init__(self, init_cfg: object = None) -> None:
        super().__init__()


def build_norm_layer(config: Config, channels: int, postfix: int | str = "") -> tuple[str, nn.Module]:
    rest = {name: value for name, value in config.items() if name != "requires_grad"}
    return f"bn{postfix}", REGISTRY.build(rest, channels)


def build_conv_layer(cfg: Config | None, *given: Any, **named: Any) -> nn.Module:
    made: nn.Module = REGISTRY.build(cfg or {"type": "Conv2d"}, *given, **named)
    return made


def build_activation_layer(config: Config) -> nn.Module:
    made: nn.Module = REGISTRY.build(config)
    return made


class ResidualBlock(BaseModule):
    """What mmdet's two blocks share: convolutions and norms by their numbers, which a sparse block calls itself."""

    kernels: tuple[int, ...] = ()
    expansion = 1

    def __init__(
        self,
        inplanes: int,
        planes: int,
        stride: int = 1,
        dilation: int = 1,
        downsample: nn.Module | None = None,
        conv_cfg: Config | None = None,
        norm_cfg: Config | None = None,
        **_: Any,
    ) -> None:
        super().__init__()
        before = inplanes
        for number, kernel in enumerate(self.kernels, 1):
            last = number == len(self.kernels)
            after = planes * (self.expansion if last else 1)
            strided = stride if number == self.kernels.index(3) + 1 else 1
            padding = dilation if kernel == 3 else 0
            sizes = {"kernel_size": kernel, "stride": strided, "padding": padding, "bias": False}
            self.add_module(f"conv{number}", build_conv_layer(conv_cfg, before, after, **sizes))
            name, norm = build_norm_layer(norm_cfg or {"type": "BN"}, after, number)
            self.add_module(name, norm)
            before = after
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name.replace("norm", "bn") if name in ("norm1", "norm2", "norm3") else name)


class BasicBlock(ResidualBlock):
    kernels = (3, 3)


class Bottleneck(ResidualBlock):
    kernels = (1, 3, 1)
    expansion = 4


class Scale(nn.Module):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale


def _reduced(loss: torch.Tensor, weight: Any, avg_factor: Any, reduction: str) -> torch.Tensor:
    loss = loss if weight is None else loss * weight
    if reduction == "none":
        return loss
    return loss.mean() if avg_factor is None else loss.sum() / avg_factor


def weighted_loss(function: Any) -> Any:
    """mmdet's decorator: weights of the elements, and a mean over `avg_factor` of them."""

    def weighted(
        pred: torch.Tensor, target: torch.Tensor, weight: Any = None, reduction: str = "mean", avg_factor: Any = None,
        **named: Any,
    ) -> torch.Tensor:  # fmt: skip
        return _reduced(function(pred, target, **named), weight, avg_factor, reduction)

    return weighted


@REGISTRY.register_module()
class CrossEntropyLoss(nn.Module):
    """mmdet's with use_sigmoid, for centerness."""

    def __init__(self, use_sigmoid: bool = True, reduction: str = "mean", **_: Any) -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, pred: torch.Tensor, target: torch.Tensor, weight: Any = None, avg_factor: Any = None) -> Any:
        each = nn.functional.binary_cross_entropy_with_logits(pred.float(), target.float(), reduction="none")
        return _reduced(each, weight, avg_factor, self.reduction)


@REGISTRY.register_module()
class FocalLoss(nn.Module):
    """mmdet's sigmoid focal loss; a target of -1, or of the number of classes, is background."""

    def __init__(self, gamma: float = 2.0, alpha: float = 0.25, reduction: str = "mean", **_: Any) -> None:
        super().__init__()
        self.gamma, self.alpha, self.reduction = gamma, alpha, reduction

    def forward(self, pred: torch.Tensor, target: torch.Tensor, weight: Any = None, avg_factor: Any = None) -> Any:
        classes = torch.arange(pred.shape[1], device=pred.device)
        hot = (target[:, None] == classes).float()
        likely = pred.float().sigmoid()
        away = hot * (1 - likely) + (1 - hot) * likely
        balance = hot * self.alpha + (1 - hot) * (1 - self.alpha)
        each = nn.functional.binary_cross_entropy_with_logits(pred.float(), hot, reduction="none")
        return _reduced(each * balance * away**self.gamma, weight, avg_factor, self.reduction)


def autocast(enabled: bool = True) -> torch.autocast:
    return torch.autocast("cuda" if torch.cuda.is_available() else "cpu", enabled=enabled)


def auto_fp16(*_: Any, **__: Any) -> Any:
    return lambda function: function


LAYERS = {
    "build_conv_layer": build_conv_layer,
    "build_norm_layer": build_norm_layer,
    "build_activation_layer": build_activation_layer,
    "CONV_LAYERS": REGISTRY,
    "Scale": Scale,
}
CONTENT: dict[str, dict[str, object]] = {
    "mmcv.cnn": LAYERS,
    "mmcv.cnn.bricks.registry": LAYERS,
    "mmcv.runner": {"BaseModule": BaseModule, "auto_fp16": auto_fp16, "force_fp32": auto_fp16},
    "mmengine.model": {"BaseModule": BaseModule, "bias_init_with_prob": lambda prior: -4.6},
    "mmengine.registry": {"MODELS": REGISTRY},
    "mmengine.runner": {"amp": SimpleNamespace(autocast=autocast)},
    "mmdet3d.registry": {"MODELS": REGISTRY, "TASK_UTILS": REGISTRY},
    "mmdet3d.models.builder": {
        **dict.fromkeys(("BACKBONES", "NECKS", "HEADS", "LOSSES", "MIDDLE_ENCODERS", "DETECTORS"), REGISTRY),
        "build_loss": REGISTRY.build,
        "build_backbone": REGISTRY.build,
    },
    "mmdet.registry": {"MODELS": REGISTRY},
    "mmdet.models": {
        **dict.fromkeys(("BACKBONES", "NECKS", "HEADS", "LOSSES", "DETECTORS"), REGISTRY),
        "build_loss": REGISTRY.build,
    },
    "mmdet.models.backbones.resnet": {"BasicBlock": BasicBlock, "Bottleneck": Bottleneck},
    "mmdet.models.losses.utils": {"weighted_loss": weighted_loss},
    "mmdet.utils": {"reduce_mean": lambda tensor: tensor},
}
