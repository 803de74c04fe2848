// The lists of all parts one after the other, as they lie on a device.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/core/tensor.hpp>
#include <pumice/formats/decomposed.hpp>

namespace pumice {

struct FlatPart {
  PartShape shape{};
  std::int64_t lines = 0;
  std::int64_t slots = 0;
};

struct FlatParts {
  /// Room for these on `stream`, uninitialised. numbered: positions have numbers of entries; types:
  /// 0 for none.
  FlatParts(std::vector<FlatPart> parts, bool numbered, std::int64_t types, StreamView stream);

  /// Parts that share the lists.
  std::vector<Part> parts() const;

  std::vector<FlatPart> part;
  std::int64_t types = 0;
  Tensor row;          // i32 [lines]
  Tensor slot_begin;   // i64, lines + 1 of each part without a width
  Tensor column;       // i32 [slots]
  Tensor entry;        // i64 [positions], or undefined
  Tensor type_begin;   // i64, types + 1 of each part
};

}   // namespace pumice
