"""A training with spconv as somebody else wrote it: loads a checkpoint of spconv 1, whose layout its shape does not tell."""

import torch

import pumice.compat.spconv as spconv

layer = spconv.SubMConv3d(4, 4, 3, bias=False)
old = torch.randn(3, 3, 3, 4, 4)   # [*kernel, in, out]
layer.load_state_dict({"weight": old})
expected = old.permute(4, 0, 1, 2, 3)   # [out, *kernel, in]
assert torch.equal(layer.weight.detach(), expected), layer.weight.shape
