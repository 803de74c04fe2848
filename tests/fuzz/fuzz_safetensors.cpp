// Fuzz target of the safetensors reader: the header, and every tensor it lists.
#include <pumice/core/safetensors.hpp>

#include "fuzz/target.hpp"
#include "points/scan_bytes.hpp"

namespace pumice::fuzz {

bool read_and_check(Bytes bytes) {
  return accepts(bytes, [&] {
    const SafetensorsFile file = SafetensorsFile::from_bytes(bytes);
    std::size_t total = 0;
    for (const std::string& name : file.names()) {
      const Tensor tensor = file.get(name);
      if (tensor.shape() != file.shape(name) || tensor.dtype() != file.dtype(name)) {
        found("a tensor that is not what the header says");
      }
      total += tensor.bytes();
    }
    if (total > bytes.size()) found("tensors that overlap");
  });
}

std::vector<std::string> seeds() {
  const auto file = [](const std::string& header, std::size_t data) {
    std::string bytes;
    test::append(bytes, static_cast<std::uint64_t>(header.size()));
    return bytes + header + std::string(data, '\1');
  };
  return {file("{}", 0), file(R"({"__metadata__":{"format":"pt"},)"
                              R"("a.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                              R"("a.bias":{"dtype":"BF16","shape":[3],"data_offsets":[24,30]},)"
                              R"("n":{"dtype":"I64","shape":[],"data_offsets":[30,38]},)"
                              R"("none":{"dtype":"U8","shape":[0,5],"data_offsets":[38,38]}}  )",
                              38)};
}

}   // namespace pumice::fuzz
