// What is compiled ahead is what networks ask for: they run and train, on a driver whose kernels of
// sets and maps are emulated and whose products do nothing, from a bundle alone. A kernel that is
// not in it cannot be compiled there, and the test fails with its name.
#include "nn/device_kernels.hpp"

#include <stdlib.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/jit/support.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/chain.hpp>
#include <pumice/nn/convolution.hpp>
#include <pumice/nn/sequential.hpp>
#include <pumice/nn/tape.hpp>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/plan_book.hpp>

#include "jit/bundle_file.hpp"
#include "jit/module.hpp"
#include "nn/chain_operands.hpp"
#include "nn/device_networks.hpp"
#include "ops/cuda/convolution.hpp"
#include "plan/cuda_architecture.hpp"
#include "plan/space/device_problem.hpp"
#include "plan/space/tile_table.hpp"
#include "plan/spec_names.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;

/// The dry driver loads anything that begins like this.
jit::CompileResult stand_in() {
  jit::CompileResult result;
  for (const char c : {'\177', 'E', 'L', 'F', ' ', ' ', ' ', ' '})
    result.cubin.push_back(static_cast<std::byte>(c));
  return result;
}

void write_bundle(const std::filesystem::path& path) {
  const std::string& name = jit::architecture_of(kGpu);
  jit::BundleWriter writer;
  for (const cuda::NamedArchitecture& architecture : cuda::known_architectures()) {
    if (architecture.name != name) continue;
    DeviceKernels kernels(architecture.bit);
    kernels.add_shared();
    kernels.add_common(product_types());
    for (const cuda::PlannedKernel& kernel : kernels.all()) {
      const auto packed = jit::BundleWriter::pack(stand_in());
      writer.add({.source = jit::source_digest(*kernel.source, name),
                  .architecture = name,
                  .compiler = {12, 9},
                  .stored_bytes = packed.size()},
                 stand_in(), packed);
    }
  }
  AtomicFile file(path);
  file.write(writer.finish());
  file.commit();
}

/// Runs in a process of its own (tests/CMakeLists.txt), where there is no compiler and no cache.
class BundledKernels : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!is_dry()) return;
    write_bundle(folder() / "all.bundle");
    setenv("PUMICE_BUNDLE", folder().path().c_str(), 1);
  }
  void SetUp() override {
    if (!is_dry()) GTEST_SKIP() << "needs the driver that only pretends, and no compiler";
  }

  static const pumice::test::TemporaryFolder& folder() {
    static const pumice::test::TemporaryFolder made;
    return made;
  }
  static bool is_dry() {
    return cuda_support().available && cuda_device_info(0).name == "Fake GPU" &&
           !kernel_compiler().available;
  }
};

struct Variant {
  const char* name;
  NetworkOptions options;
};
const Variant kVariants[] = {
    {"minkunet42", {}},
    {"minkunet42", {.widths = kDrivingWidths}},
    {"minkunet42", {.width_factor = 0.5}},
    {"centerpoint", {}},
    {"second", {}},
};

SparseTensor scene(const char* name, std::int64_t channels, DType type, StreamView stream) {
  const auto shape = find_network(name).spatial_shape;
  const auto set = make_scene(
      {.sites = 40, .low = shape ? 0 : -60, .high = 60, .spatial_shape = shape, .seed = 1});
  return on(make_input(set, channels), type, stream);
}

TEST_F(BundledKernels, AreAllThatTrainingAsksFor) {
  const Stream stream(kGpu);
  for (const Variant& variant : kVariants) {
    for (const std::int64_t channels : {4, 5}) {
      NetworkOptions options = variant.options;
      options.in_channels = channels;
      auto network = make_network(variant.name, options);
      for (const ElementType product : product_types()) {
        SCOPED_TRACE(std::string(variant.name) + " in " + cuda::name_of(product));
        const DType type = stored_as(product);
        network->to(StreamView{});
        network->to(type);
        network->to(stream);
        Context context{.record = true, .numerics = {.tf32 = product == ElementType::tf32}};
        const SparseTensor y =
            network->forward(scene(variant.name, channels, type, stream), context);
        EXPECT_GT(y.rows(), 0);
        backward(y.node, Tensor(y.features.shape(), type, stream));
        network->clear_gradients();
      }
    }
  }
}

/// A block whose input comes in two tensors, as a chain that trains: the shortcut, and both
/// convolutions.
void train_as_chain(const ResidualBlock& block, ElementType product, StreamView stream) {
  const SparseTensor x = scene("minkunet42", 4, DType::f32, stream);
  const std::int64_t rows = x.rows();
  const std::int64_t in = block.first().spec().in_channels, out = block.first().spec().out_channels;
  const KernelMapPtr cube = submanifold_map(x.coordinates, block.first().spec().window);
  const KernelMapPtr point =
      submanifold_map(x.coordinates, submanifold_window(3, axes(3, 1), axes(3, 1)));
  const Chain chain({{.input = 0, .second = 1},
                     {.input = 0, .second = 1, .relu = true},
                     {.input = 3, .residual = 2, .relu = true}});
  const Shape weights[] = {{1, in, out}, {27, in, out}, {27, out, out}};
  ChainOperands operands(weights, stream);
  const DType type = stored_as(product);
  const Tensor left = Tensor::zeros({rows, in - block.right_channels()}, type, stream);
  const Tensor right = Tensor::zeros({rows, block.right_channels()}, type, stream);
  const std::vector<KernelMapView> maps{point->view(), cube->view(), cube->view()};
  const ChainInput input{.features = left,
                         .other = right,
                         .maps = maps,
                         .numerics = {.tf32 = product == ElementType::tf32}};
  const ChainTrained trained = chain.train(input, operands.parameters, operands.running);
  const Tensor grad_output = Tensor::zeros({rows, out}, type, stream);
  (void)chain.gradients({grad_output, trained.output, true, true}, input, operands.parameters,
                        *trained.record);
}

TEST_F(BundledKernels, AreAllThatChainsOfTwoValuesAskForInTraining) {
  const Stream stream(kGpu);
  int blocks = 0;
  for (const Variant& variant : kVariants) {
    const auto network = make_network(variant.name, variant.options);
    for (const ParameterTree* module : network->modules()) {
      const auto* const block = dynamic_cast<const ResidualBlock*>(module);
      if (block == nullptr || block->right_channels() == 0) continue;
      ++blocks;
      for (const ElementType product : product_types()) {
        SCOPED_TRACE(std::string(variant.name) + " in " + cuda::name_of(product));
        train_as_chain(*block, product, stream);
      }
    }
  }
  EXPECT_EQ(blocks, 12) << "four of each MinkUNet42";
}

TEST_F(BundledKernels, AreAllThatInferenceAsksForLayerByLayerAndAsAGraph) {
  const Stream stream(kGpu);
  for (const Variant& variant : kVariants) {
    auto network = make_network(variant.name, variant.options);
    network->eval();
    fold(*network);
    for (const ElementType product : product_types()) {
      SCOPED_TRACE(std::string(variant.name) + " in " + cuda::name_of(product));
      const DType type = stored_as(product);
      const Numerics numerics{.tf32 = product == ElementType::tf32};
      network->to(StreamView{});
      network->to(type);
      network->to(stream);
      Context context{.numerics = numerics};
      const SparseTensor x = scene(variant.name, 4, type, stream);
      EXPECT_GT(network->forward(x, context).rows(), 0);
      CapturedNetwork captured(network, stream, {.numerics = numerics});
      (void)captured.forward(
          x.coordinates->coordinates(), x.features,
          {.spatial_shape = find_network(variant.name).spatial_shape, .batch_size = 2});
    }
  }
}

TEST_F(BundledKernels, OfOtherChannelsAreNamedWhereNothingCanCompileThem) {
  const Stream stream(kGpu);
  auto network = make_network("minkunet42", {.widths = kSmall});
  network->eval();
  network->to(stream);
  Context context;
  const std::string said = pumice::test::message_of(
      [&] { network->forward(scene("minkunet42", 4, DType::f32, stream), context); });
  EXPECT_NE(said.find("fma_f32_4x8_"), std::string::npos) << said;
  EXPECT_NE(said.find("it is not in " + (folder() / "all.bundle").string()), std::string::npos)
      << said;
  EXPECT_NE(said.find("no NVRTC"), std::string::npos) << said;
}

std::set<std::string> names_of(const DeviceKernels& kernels) {
  std::set<std::string> names;
  for (const cuda::PlannedKernel& kernel : kernels.all())
    names.insert(kernel.source->name);
  return names;
}

/// Any number of rows on any machine of an architecture: the pick among the candidates of one layer
/// is what varies.
TEST(DeviceKernelsAhead, HoldWhatTheRulesPickInEveryType) {
  for (const cuda::NamedArchitecture& architecture : cuda::known_architectures()) {
    DeviceKernels kernels(architecture.bit);
    kernels.add(64, 96, product_types());
    const std::set<std::string> names = names_of(kernels);
    Random random(5, 1);
    for (int i = 0; i < 20'000; ++i) {
      const auto type = product_types()[static_cast<std::size_t>(i) % product_types().size()];
      const auto direction = static_cast<Direction>(random.integer(0, 2));
      ConvolutionProblem problem{
          .direction = direction,
          .out_rows = random.integer(0, std::int64_t{1} << random.integer(1, 33)),
          .offsets = 27,
          .in_channels = 64,
          .out_channels = 96,
          .dtype = stored_as(type),
          .numerics = {.deterministic = random.integer(0, 1) == 1,
                       .tf32 = type == ElementType::tf32}};
      if (direction == Direction::input_gradient)
        std::swap(problem.in_channels, problem.out_channels);
      Target target = usual_target(architecture.bit);
      target.multiprocessors = static_cast<int>(random.integer(16, 192));
      const PlanPtr plan = choose_by_rules(problem, target);
      for (const cuda::PlannedKernel& kernel : cuda::kernels_of(*plan, problem, architecture.bit)) {
        ASSERT_TRUE(names.contains(kernel.source->name))
            << kernel.source->name << ": " << problem.out_rows << " rows on "
            << target.multiprocessors << " multiprocessors of " << architecture.name;
      }
    }
  }
}

/// What plans of a table ask for, which need not be what the rules would pick.
TEST(DeviceKernelsAhead, HoldWhatMeasuredPlansAskFor) {
  const ConvolutionProblem problem{.out_rows = 6000,
                                   .offsets = 27,
                                   .in_channels = 256,
                                   .out_channels = 256,
                                   .dtype = DType::f16};
  const Target hopper = usual_target(kSm90a);
  std::vector<tune::StoredPlan> table;
  std::set<std::string> wanted{cuda::planned_finish(ElementType::f16).source->name};
  for (const Candidate& one : candidates(problem, hopper)) {
    if (one.plan.splits == 1) continue;
    wanted.insert(cuda::planned(cuda::tile_spec(problem, one.plan)).source->name);
    table.push_back(
        {.key = key_of(problem, hopper), .record = {.plan = to_text(one.plan), .untuned_s = 1}});
  }
  ASSERT_GT(wanted.size(), 1u);
  tune::StoredPlan of_cpu;
  of_cpu.key.problem = "forward f32 4>8 offsets 27";
  of_cpu.record.plan = R"({"dataflow":"fetch_on_demand","tile_rows":512})";
  table.push_back(std::move(of_cpu));
  DeviceKernels kernels(kSm90a);
  kernels.add(table);
  EXPECT_EQ(names_of(kernels), wanted) << "a CPU's plan needs no kernel of a device";
  table[0].record.plan = "wgmma";
  EXPECT_THROW(DeviceKernels(kSm90a).add(table), UserError);
}

TEST(DeviceKernelsAhead, AreBoundedForEachArchitecture) {
  for (const cuda::NamedArchitecture& architecture : cuda::known_architectures()) {
    DeviceKernels picked(architecture.bit);
    picked.add_shared();
    picked.add_common(product_types());
    EXPECT_GT(picked.all().size(), 200u) << architecture.name;
    DeviceKernels all = picked;
    all.add_tables();
    EXPECT_GT(all.all().size(), picked.all().size()) << architecture.name;
    EXPECT_LT(all.all().size(), 2000u) << architecture.name;
  }
}

}   // namespace
}   // namespace pumice::nn
