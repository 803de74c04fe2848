"""Refuses: int8 layers and their calibration are not there."""

raise ImportError(
    "spconv.pytorch.quantization (int8 layers and their calibration) is not there in pumice.compat: "
    "train and infer in float16 or bfloat16"
)
