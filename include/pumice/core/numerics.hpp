// What an operator may do to the numbers that it computes.
#pragma once

namespace pumice {

/// On the CPU nothing of it changes a result: that is bitwise the same every time, and f32 is
/// multiplied as f32.
struct Numerics {
  /// On a device: the same bits every time. Costs weight gradients memory and a launch, and
  /// fetch_on_demand a row of f32 for each pair; all else has them anyway.
  bool deterministic = false;
  /// f32 features on a device: products of numbers rounded to tf32, sums in f32. UserError for
  /// other types and on the CPU. Depthwise convolutions multiply in f32 all the same.
  bool tf32 = false;

  friend bool operator==(const Numerics&, const Numerics&) = default;
};

}   // namespace pumice
