// Rows that are grouped by a type, each of which has a matrix of its own: edges by their relation,
// nodes by their kind.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/device.hpp>
#include <pumice/formats/relation.hpp>

namespace pumice {

/// Rows [begin[t], begin[t + 1]) are of type t. Tiles of rows of one type are cut from it when
/// first asked for, and kept with it. Any thread may ask.
class TypedRows {
 public:
  /// `begin`: [types + 1], ascending from 0. On a device, lists are enqueued on `stream`. UserError
  /// where bounds descend, and for more than 2³¹ − 1 rows.
  explicit TypedRows(std::vector<std::int64_t> begin, StreamView stream = {});
  TypedRows(const TypedRows&) = delete;
  TypedRows& operator=(const TypedRows&) = delete;
  ~TypedRows();

  std::int64_t types() const { return static_cast<std::int64_t>(begin_.size()) - 1; }
  std::int64_t rows() const { return begin_.back(); }
  std::span<const std::int64_t> begin() const { return begin_; }
  StreamView stream() const { return stream_; }
  /// Every row meets itself, through its type. Valid as long as this.
  RelationView relation() const;

 private:
  std::vector<std::int64_t> begin_;
  StreamView stream_;
  Buffer<std::int32_t> row_;                       // 0, 1, 2, …: both sides of each pair
  std::unique_ptr<cuda::DeviceFormats> formats_;   // on a device
};

}   // namespace pumice
