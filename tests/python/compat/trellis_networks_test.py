"""TRELLIS's networks, unmodified, beside the same code on dense convolutions of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from trellis_code import BACKENDS, Code, batch_of_cells, compared, randomise, trellis

ROWS, EXTENT, LATENT = 60, 6, 4

FLOW = {
    "resolution": EXTENT, "in_channels": LATENT, "model_channels": 24, "cond_channels": 10,
    "out_channels": LATENT, "num_blocks": 1, "num_heads": 2, "mlp_ratio": 2, "patch_size": 2,
    "num_io_res_blocks": 2, "io_block_channels": [8],
}  # fmt: skip
CODER = {"resolution": EXTENT, "num_blocks": 2, "num_heads": 2, "mlp_ratio": 1, "window_size": 4}
GAUSSIANS = {
    "num_gaussians": 2, "voxel_size": 1.5, "3d_filter_kernel_size": 9e-4, "scaling_bias": 4e-3,
    "opacity_bias": 0.1, "scaling_activation": "softplus", "perturb_offset": True,
    "lr": {"_xyz": 1.0, "_features_dc": 1.0, "_opacity": 1.0, "_scaling": 1.0, "_rotation": 0.1},
}  # fmt: skip


def flow(net: torch.nn.Module, x: Any) -> list[Tensor]:
    time = torch.tensor([0.3, 0.8], device=x.device)
    return [net(x, time * 1000, torch.randn(2, 5, FLOW["cond_channels"]).to(x.device)).feats]


def encode(net: torch.nn.Module, x: Any) -> list[Tensor]:
    return list(net(x, sample_posterior=False, return_raw=True)[1:])


def gaussians(net: torch.nn.Module, x: Any) -> list[Tensor]:
    return [getattr(made, name) for made in net(x) for name in net.layout]


def mesh(net: torch.nn.Module, x: Any) -> list[Tensor]:
    """Features on a grid four times as fine, which a mesh would be made of."""
    made = net(x)
    assert all(len(item.coords) == 64 * int((x.coords[:, 0] == i).sum()) for i, item in enumerate(made))
    return [item.feats for item in made]


NETWORKS: dict[str, tuple[str, dict[str, Any], Callable[[torch.nn.Module, Any], list[Tensor]]]] = {
    "flow": ("SLatFlowModel", FLOW, flow),
    "flow, checkpoints": (
        "ElasticSLatFlowModel", {**FLOW, "use_checkpoint": True, "qk_rms_norm": True}, flow,
    ),
    "flow, no skips": ("SLatFlowModel", {**FLOW, "use_skip_connection": False}, flow),
    "encoder": (
        "SLatEncoder", {**CODER, "in_channels": LATENT, "model_channels": 24, "latent_channels": 3}, encode,
    ),
    "Gaussian decoder": (
        "SLatGaussianDecoder",
        {
            **CODER, "model_channels": 24, "latent_channels": LATENT, "attn_mode": "shift_sequence",
            "representation_config": GAUSSIANS,
        },
        gaussians,
    ),
    # Its norms have 32 groups, on an eighth of the channels too.
    "mesh decoder": (
        "SLatMeshDecoder",
        {**CODER, "model_channels": 256, "latent_channels": LATENT, "representation_config": {}},
        mesh,
    ),
}  # fmt: skip

# Added to a channel that a norm then shifts to a mean of 0.
WITHOUT_EFFECT = "upsample.1.out_layers.0.conv.bias"


def outcome(code: Code, device: torch.device, name: str, half: bool = False) -> list[Tensor]:
    """Outputs, then the gradients of the features and of all parameters."""
    kind, given, run = NETWORKS[name]
    net = getattr(code.models, kind)(**given, use_fp16=half)
    randomise(net)
    if half:
        net.convert_to_fp16()
    net = net.to(device)
    torch.manual_seed(7)
    cells = batch_of_cells(device, EXTENT, ROWS)
    feats = torch.randn(len(cells), LATENT).to(device).requires_grad_()
    outputs = run(net, code.sparse.SparseTensor(feats, cells))
    loss = sum((y.float() * torch.linspace(-1, 1, y.numel()).to(device).reshape(y.shape)).sum() for y in outputs)
    wanted = {"features": feats, **dict(net.named_parameters())}
    wanted.pop(WITHOUT_EFFECT, None)
    gradients = torch.autograd.grad(loss, list(wanted.values()))
    for where, gradient in zip(wanted, gradients, strict=True):
        assert bool(torch.isfinite(gradient).all()) and bool(gradient.any()), where
    return [*outputs, *gradients]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_networks(device: torch.device, backend: str, name: str) -> None:
    mine, theirs = compared(backend, lambda code: outcome(code, device, name))
    check(mine, theirs, 1e-3)  # sums of thousands of rows in float32, which cancel


@pytest.mark.parametrize("name", ["flow", "mesh decoder"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_networks_in_half_precision(device: torch.device, backend: str, name: str) -> None:
    with trellis(backend) as code:
        full, half = (outcome(code, device, name, kind) for kind in (False, True))
    check(half, full, 0.05)


def check(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for left, right in zip(found, expected, strict=True):
        assert left.shape == right.shape
        assert (left.float() - right).norm() < tolerance * right.norm()
