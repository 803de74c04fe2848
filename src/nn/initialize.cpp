// Seeded first values.
#include <pumice/nn/initialize.hpp>

#include <cmath>
#include <string_view>

#include <pumice/core/random.hpp>

namespace pumice::nn {
namespace {

constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325u;
constexpr std::uint64_t kFnvPrime = 0x100000001b3u;

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t hash = kFnvBasis) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i)
    hash = (hash ^ bytes[i]) * kFnvPrime;
  return hash;
}

}   // namespace

void initialize(ParameterTree& network, std::uint64_t seed) {
  for (const NamedParameter& named : network.parameters()) {
    const ParameterSpec& spec = named.parameter->spec();
    Tensor& values = named.parameter->edit();
    const double bound = spec.fan_in > 0 ? 1.0 / std::sqrt(static_cast<double>(spec.fan_in)) : 0.0;
    Random random(seed, hash_bytes(named.name.data(), named.name.size()));
    dispatch_floating(values.dtype(), "initialisation", [&](auto zero) {
      using T = decltype(zero);
      for (T& value : values.span<T>()) {
        const double drawn = spec.fan_in > 0 ? random.uniform(-bound, bound) : spec.initial;
        value = narrow<T>(static_cast<compute_t<T>>(drawn));
      }
    });
  }
}

std::uint64_t fingerprint(const ParameterTree& network) {
  std::uint64_t hash = kFnvBasis;
  for (const NamedParameter& named : network.parameters()) {
    const Tensor& values = named.parameter->value();
    hash = hash_bytes(named.name.data(), named.name.size(), hash);
    hash = hash_bytes(values.raw(), values.bytes(), hash);
  }
  return hash;
}

}   // namespace pumice::nn
