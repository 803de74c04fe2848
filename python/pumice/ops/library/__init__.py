"""The operators of torch.library, `torch.ops.pumice.*`, for graphs: traced, compiled, exported.

Sites and maps are tokens (see tokens.cpp), rows of outputs are given, so that fake tensors know
all shapes; an operator that makes sites makes as many as it finds, which in a graph is a number
without a value. Eager calls take a shorter way, in the modules of the same names above.
"""

from . import (  # noqa: F401  (registers the operators)
    convolution,
    convolution_gradients,
    dense,
    flops,
    maps,
    normalization,
    pooling,
    processes,
    rows,
    sites,
)
