"""Memory of GPUs that Pumice keeps for later calls."""

from __future__ import annotations

from . import _C


def release_memory() -> int:
    """Gives the blocks of GPU memory that Pumice keeps for later calls back to PyTorch, on all devices.

    Pumice does so itself where it asks PyTorch for memory that is not there, and gives large blocks back when a pass with
    gradients begins. Call it before other code needs all of a GPU; `torch.cuda.empty_cache()` then gives them to the driver.

    Returns:
        How many bytes they were; 0 where no GPU was used.
    Raises:
        Nothing.
    Waits:
        Never.
    Example:
        >>> pumice.release_memory()
        0
    """
    kept: int = _C.kept_device_bytes()
    _C.release_device_memory()
    return kept
