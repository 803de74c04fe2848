// The subcommands of `pumice`: each file adds one.
#pragma once

namespace CLI {
class App;
}

namespace pumice::cli {

void add_info_command(CLI::App& app);
void add_run_command(CLI::App& app);
void add_tune_command(CLI::App& app);
void add_explain_command(CLI::App& app);
void add_conv_command(CLI::App& app);
void add_spmm_command(CLI::App& app);
void add_sddmm_command(CLI::App& app);
void add_rgms_command(CLI::App& app);
void add_rgcn_command(CLI::App& app);
void add_simulate_command(CLI::App& app);
void add_voxelize_command(CLI::App& app);
void add_view_command(CLI::App& app);
void add_bench_command(CLI::App& app);
void add_bench_sparse_command(CLI::App& bench);
void add_bench_driving_command(CLI::App& bench);
void add_inspect_command(CLI::App& app);
void add_plans_command(CLI::App& app);
void add_kernels_command(CLI::App& app);
void add_doctor_command(CLI::App& app);

}   // namespace pumice::cli
