"""Convolution, its configuration, and kernel maps."""

from . import conv_config, conv_mode, func, hash, kmap, utils
from .conv import conv3d
from .conv_config import (
    Dataflow,
    clear_global_conv_config,
    get_default_conv_config,
    get_global_conv_config,
    set_global_conv_config,
)
from .conv_mode import (
    ConvMode,
    get_conv_mode,
    get_downsample_mode,
    get_kmap_mode,
    set_conv_mode,
    set_downsample_mode,
    set_kmap_mode,
)
from .hash import convert_transposed_out_in_map, sphash, sphashquery
from .kmap import build_kernel_map, spdownsample, spupsample_generative, transpose_kernel_map
