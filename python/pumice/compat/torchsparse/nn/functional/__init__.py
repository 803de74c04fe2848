"""TorchSparse's functions."""

from . import conv_config
from .activation import leaky_relu, relu, silu
from .conv import conv3d
from .conv_config import (
    clear_global_conv_config,
    get_conv_mode,
    get_default_conv_config,
    get_global_conv_config,
    set_conv_mode,
    set_downsample_mode,
    set_global_conv_config,
    set_kmap_mode,
)
from .pooling import global_avg_pool, global_max_pool, spcrop
from .points import calc_ti_weights, spcount, spdevoxelize, sphash, sphashquery, spvoxelize

__all__ = [name for name in dir() if name[0].islower()]
