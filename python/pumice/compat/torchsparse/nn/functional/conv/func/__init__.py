"""Convolutions by kernel maps of tensors."""

from . import fetch_on_demand, gather_scatter, implicit_gemm
from .fetch_on_demand import FetchOnDemandConvolutionFuntion
from .gather_scatter import GatherScatterConvolutionFuntion
from .implicit_gemm import ImplicitGEMMConvolutionFuntion
