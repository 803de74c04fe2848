// What a kernel does on any path before it waits for the grid before it.
#pragma once

#include <string>
#include <string_view>

#include "support/ptx.hpp"

namespace pumice::test {

/// What is wrong with how the kernels of `ptx` that may read ahead wait; empty where nothing is. On
/// every path from a kernel's first instruction, a thread that has not waited may calculate, meet
/// the other threads of its block, use shared memory, read global memory by ld.relaxed.gpu, and
/// copy to shared memory. It does not write global memory, let the next grid in or return.
std::string complaint_about_reading_ahead(std::string_view ptx, EntryCount* count = nullptr);

}   // namespace pumice::test
