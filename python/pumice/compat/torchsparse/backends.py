"""Switches that TorchSparse has. Pumice chooses kernels by itself, and TF32 is PyTorch's
`torch.set_float32_matmul_precision`: they are read by nobody."""

benchmark = False
allow_tf32 = False
allow_fp16 = True
device_capability = (0, 0)
hash_rsv_ratio = 2


def init() -> None:
    """Nothing is to be done."""
