"""Activations and dropout, on features."""

from __future__ import annotations

import torch

from ..tensor import SparseTensor


def _on_features(base: type[torch.nn.Module]) -> type[torch.nn.Module]:
    def forward(self: torch.nn.Module, x: SparseTensor) -> SparseTensor:
        """[N, C] to [N, C], on the same sites."""
        return SparseTensor._of(x.coords, base.forward(self, x.features))

    return type(
        base.__name__,
        (base,),
        {
            "forward": forward,
            "__module__": __name__,
            "__qualname__": base.__name__,
            "__doc__": f"torch.nn.{base.__name__} of the features of a sparse tensor.",
        },
    )


ReLU = _on_features(torch.nn.ReLU)
ReLU6 = _on_features(torch.nn.ReLU6)
LeakyReLU = _on_features(torch.nn.LeakyReLU)
PReLU = _on_features(torch.nn.PReLU)
ELU = _on_features(torch.nn.ELU)
GELU = _on_features(torch.nn.GELU)
SiLU = _on_features(torch.nn.SiLU)
Sigmoid = _on_features(torch.nn.Sigmoid)
Tanh = _on_features(torch.nn.Tanh)
Dropout = _on_features(torch.nn.Dropout)
