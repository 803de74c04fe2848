// A table of kernels for each type that features are stored in.
#pragma once

#include <pumice/core/dtype.hpp>
#include <pumice/core/error.hpp>

namespace pumice::cpu {

template <class Table> class StorageTables {
 public:
  explicit StorageTables(Table (*make)(DType storage))
      : f64_(make(DType::f64)),
        f32_(make(DType::f32)),
        f16_(make(DType::f16)),
        bf16_(make(DType::bf16)) {}

  /// UserError for a type that is not multiplied.
  const Table& of(DType storage) const {
    switch (storage) {
      case DType::f64: return f64_;
      case DType::f32: return f32_;
      case DType::f16: return f16_;
      case DType::bf16: return bf16_;
      default: break;
    }
    detail::raise_user("features of dtype = ", name_of(storage),
                       " cannot be multiplied; use f64, f32, f16 or bf16");
  }

 private:
  Table f64_, f32_, f16_, bf16_;
};

}   // namespace pumice::cpu
