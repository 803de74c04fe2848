// The functions an epilogue can end with, for the host compiler and for NVRTC.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

enum class Activation : uint8_t { none, relu, leaky_relu, silu, gelu, sigmoid, tanh };

}   // namespace pumice
