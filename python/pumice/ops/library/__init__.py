"""Registers the operators of torch.library, `torch.ops.pumice.*`, which traced, compiled and exported graphs
consist of.

Sites, maps and graphs are tokens (see tokens.cpp). The number of rows of an output is an argument, so that tensors
without values have their shapes; an operator that makes sites returns as many as it finds, which in a graph is a
number without a value. Eager calls do not come here: the modules of the same names in pumice/ops call the
extension.
"""

from . import (  # noqa: F401  (registers the operators)
    convolution,
    convolution_gradients,
    dense,
    flops,
    graphs,
    maps,
    normalization,
    pooling,
    processes,
    rgms,
    rows,
    scores,
    sites,
    typed_linear,
)
