"""Refuses: graphs are not turned into TensorRT's."""

raise ImportError(
    "spconv.pytorch.interpreter (the conversion of torch.fx graphs to TensorRT) is not there in "
    "pumice.compat: torch.fx.Interpreter runs graphs"
)
