"""What spconv says of how it was built."""

from __future__ import annotations

import torch

# Whether no GPU can ever be used: PyTorch is one without CUDA.
CPU_ONLY_BUILD = torch.version.cuda is None
HAS_BOOST = False
