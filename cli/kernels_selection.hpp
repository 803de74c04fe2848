// Which kernels the subcommands of `pumice kernels` are about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/plan/store.hpp>

#include "nn/device_kernels.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cli {

struct KernelArguments {
  std::vector<std::string> architectures;
  std::vector<std::string> channels;   // "32x64"
  bool common = false;
  std::vector<std::string> tables;       // of plans, by path
  std::vector<tune::StoredPlan> plans;   // those of `tables`, whose kernels are asked for too
  std::vector<std::string> types;
  std::string nvrtc;
  std::string out;
  bool json = false;
};

/// Those that are asked for, or all. UserError where one is unknown.
std::vector<cuda::NamedArchitecture> architectures_of(const KernelArguments& arguments);

/// 90 of "sm_90a", as NVRTC counts.
int number_of(std::string_view architecture);

/// What networks ask for; with `tables` all that could be picked for them too.
nn::DeviceKernels selection(const KernelArguments& arguments, std::uint32_t architecture,
                            bool tables);

void list_kernels(const KernelArguments& arguments);
void build_bundle(const KernelArguments& arguments);
/// UserError where a kernel fails or spills.
void check_kernels(const KernelArguments& arguments);

}   // namespace pumice::cli
