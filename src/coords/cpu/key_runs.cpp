// Cutting sorted keys into runs.
#include "coords/cpu/key_runs.hpp"

#include "coords/cpu/compact.hpp"

namespace pumice {

KeyRuns find_runs(std::span<const std::uint64_t> sorted_keys, std::span<const std::int32_t> order) {
  const auto size = static_cast<std::int64_t>(sorted_keys.size());
  const auto* keys = sorted_keys.data();
  const Compaction starts(size,
                          [keys](std::int64_t at) { return at == 0 || keys[at] != keys[at - 1]; });
  KeyRuns runs{Buffer<std::uint64_t>(starts.kept()), Tensor(Shape{size}, DType::i32),
               Tensor(Shape{starts.kept()}, DType::i32)};
  auto* run_of = runs.run_of.data<std::int32_t>();
  auto* first = runs.first.data<std::int32_t>();
  const auto* element = order.data();
  starts.for_each(
      [&](std::int64_t at, std::int64_t run) {
        runs.keys[run] = keys[at];
        first[run] = element[at];
        run_of[element[at]] = static_cast<std::int32_t>(run);
      },
      [&](std::int64_t at, std::int64_t next_run) {
        run_of[element[at]] = static_cast<std::int32_t>(next_run - 1);
      });
  return runs;
}

Buffer<std::uint64_t> distinct_keys(std::span<const std::uint64_t> sorted_keys, int shift) {
  const auto* keys = sorted_keys.data();
  const Compaction starts(static_cast<std::int64_t>(sorted_keys.size()),
                          [keys, shift](std::int64_t at) {
                            return at == 0 || keys[at] >> shift != keys[at - 1] >> shift;
                          });
  Buffer<std::uint64_t> distinct(starts.kept());
  starts.for_each([&](std::int64_t at, std::int64_t run) { distinct[run] = keys[at] >> shift; });
  return distinct;
}

}   // namespace pumice
