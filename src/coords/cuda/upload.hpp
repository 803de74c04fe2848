// Tables that the host has worked out, to where kernels read them.
#pragma once

#include <cstdint>
#include <span>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Enqueues writing `words` to `to`, 16-byte aligned. They may go when this returns, also while a
/// graph is recorded: then they are arguments of kernels, of 16 KB each, which the graph keeps;
/// else it is a copy.
void upload(jit::KernelRunner& runner, std::uint32_t* to, std::span<const std::uint32_t> words);

}   // namespace pumice::cuda
