// Who has which of the counters by which the last team at a long row knows that it is the last.
#pragma once

#include <memory>

#include <pumice/core/device.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice::cuda {

/// Of one pattern, kept with it. Products on a stream, and those of a recording, come one after the
/// other and leave the counters at 0; two that run at a time must not share them. A set belongs to
/// the first stream or recording that asks, for as long as the pattern lives. For any number of
/// threads.
class ArrivalSets {
 public:
  ArrivalSets();
  /// The number of the set of what is enqueued on `stream` now; -1: others have all of them.
  int of(StreamView stream) const;

 private:
  struct Owners;
  std::shared_ptr<Owners> owners_;
};

/// The counters of a product with so many tiles of channels, [tiles, most_row_parts]; null where
/// the pattern has none to spare, and parts are added up by a launch of their own.
std::uint32_t* arrival_counters(const CsrView& pattern, std::int64_t tiles, StreamView stream);

}   // namespace pumice::cuda
