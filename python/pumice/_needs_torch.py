"""Imports PyTorch, or says what to install. Packages that need it import this module before anything else."""

try:
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "this part of Pumice needs PyTorch, which is not installed: pip install torch", name="torch"
    ) from None
