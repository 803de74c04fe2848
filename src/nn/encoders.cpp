// The sparse encoders of CenterPoint and SECOND. Axes are x, y, z: detectors' papers list z first.
#include <string>
#include <utility>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/networks.hpp>

namespace pumice::nn {
namespace {

/// As OpenPCDet and CenterPoint train them, every norm: their checkpoints mean this epsilon.
constexpr NormOptions kNorm{.epsilon = 1e-3, .momentum = 0.01};

/// conv 3³ /2, outputs wherever an input reaches.
ModulePtr halving(std::int64_t in, std::int64_t out, Axes padding) {
  return convolution_block(
      {.in_channels = in,
       .out_channels = out,
       .window = {.size = axes(3, 3), .stride = axes(3, 2), .padding = padding},
       .mode = ConvolutionMode::strided},
      kNorm);
}

/// conv (1,1,3) / (1,1,2): only the height shrinks.
std::shared_ptr<Sequential> flattening(std::int64_t in, std::int64_t out) {
  return convolution_block({.in_channels = in,
                            .out_channels = out,
                            .window = {.size = {1, 1, 3, 1}, .stride = {1, 1, 2, 1}},
                            .mode = ConvolutionMode::strided},
                           kNorm);
}

ModulePtr block(std::int64_t in, std::int64_t out) {
  return convolution_block(submanifold(in, out), kNorm);
}

ModulePtr residual(std::int64_t channels) {
  return std::make_shared<ResidualBlock>(channels, channels, 3, kNorm);
}

constexpr Axes kPadded{1, 1, 1, 0};
constexpr Axes kPaddedFlat{1, 1, 0, 0};   // the last halving keeps no cell below or above the grid

template <class Stages> SparseTensor run(const Stages& stages, SparseTensor x, Context& context) {
  for (const auto& stage : stages)
    x = stage->forward(std::move(x), context);
  return x;
}

std::shared_ptr<Sequential> sequence(std::vector<ModulePtr> layers) {
  return std::make_shared<Sequential>(std::move(layers));
}

}   // namespace

CenterPointEncoder::CenterPointEncoder(const EncoderOptions& options)
    : stages_{
          add_child("conv_input", convolution_block(submanifold(options.in_channels, 16), kNorm)),
          add_child("conv1", sequence({residual(16), residual(16)})),
          add_child("conv2", sequence({halving(16, 32, kPadded), residual(32), residual(32)})),
          add_child("conv3", sequence({halving(32, 64, kPadded), residual(64), residual(64)})),
          add_child("conv4",
                    sequence({halving(64, 128, kPaddedFlat), residual(128), residual(128)})),
          add_child("conv_out", flattening(128, 128))} {
  initialize(*this, options.seed);
}

SparseTensor CenterPointEncoder::forward(SparseTensor x, Context& context) {
  return run(stages_, std::move(x), context);
}

SecondEncoder::SecondEncoder(const EncoderOptions& options)
    : stages_{
          add_child("conv_input", convolution_block(submanifold(options.in_channels, 16), kNorm)),
          add_child("conv1", sequence({block(16, 16)})),
          add_child("conv2", sequence({halving(16, 32, kPadded), block(32, 32), block(32, 32)})),
          add_child("conv3", sequence({halving(32, 64, kPadded), block(64, 64), block(64, 64)})),
          add_child("conv4",
                    sequence({halving(64, 64, kPaddedFlat), block(64, 64), block(64, 64)})),
          add_child("conv_out", flattening(64, 128))} {
  initialize(*this, options.seed);
}

SparseTensor SecondEncoder::forward(SparseTensor x, Context& context) {
  return run(stages_, std::move(x), context);
}

}   // namespace pumice::nn
