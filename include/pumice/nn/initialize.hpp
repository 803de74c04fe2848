// First values of parameters.
#pragma once

#include <cstdint>

#include <pumice/nn/parameter_tree.hpp>

namespace pumice::nn {

/// Weights and biases uniform in ±1/sqrt(fan_in), fan_in = K · C_in / groups: what PyTorch's
/// kaiming_uniform with a = √5 gives; norms 1 and 0. Each parameter draws from a stream of its own,
/// named by the seed and its path, so the values depend neither on threads nor on other layers.
void initialize(ParameterTree& network, std::uint64_t seed);

/// A number that changes when any bit of any parameter or buffer does (64-bit FNV-1a over names and
/// elements).
std::uint64_t fingerprint(const ParameterTree& network);

}   // namespace pumice::nn
