"""TorchSparse's functions."""

from . import activation, conv, count, crop, devoxelize, downsample, hash, pooling, query, voxelize
from .activation import leaky_relu, relu, silu
from .conv import (
    ConvMode,
    Dataflow,
    build_kernel_map,
    clear_global_conv_config,
    conv3d,
    conv_config,
    conv_mode,
    convert_transposed_out_in_map,
    get_conv_mode,
    get_default_conv_config,
    get_downsample_mode,
    get_global_conv_config,
    get_kmap_mode,
    set_conv_mode,
    set_downsample_mode,
    set_global_conv_config,
    set_kmap_mode,
    spdownsample,
    spupsample_generative,
    transpose_kernel_map,
)
from .count import spcount
from .crop import spcrop
from .devoxelize import calc_ti_weights, spdevoxelize
from .hash import sphash
from .pooling import global_avg_pool, global_max_pool
from .query import sphashquery
from .voxelize import spvoxelize

__all__ = [name for name in dir() if not name.startswith("_")]
