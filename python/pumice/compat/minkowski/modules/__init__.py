"""Blocks of networks, where MinkowskiEngine has them."""

from . import resnet_block, senet_block
