"""Activations that a convolution layer may apply to its sums."""

from enum import Enum


class Activation(Enum):
    None_ = 0
    ReLU = 1
    Sigmoid = 2
    LeakyReLU = 3
