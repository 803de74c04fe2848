// The values of specifications as C++ spells them, for sources.
#pragma once

#include <string>

#include <pumice/shared/tile_spec.h>

namespace pumice::cuda {

inline const char* name_of(Instruction instruction) {
  switch (instruction) {
    case Instruction::fma: return "fma";
    case Instruction::mma_sync: return "mma_sync";
    case Instruction::wgmma: return "wgmma";
  }
  return "?";
}

inline const char* name_of(ElementType element) {
  switch (element) {
    case ElementType::f32: return "f32";
    case ElementType::tf32: return "tf32";
    case ElementType::f16: return "f16";
    case ElementType::bf16: return "bf16";
  }
  return "?";
}

inline const char* name_of(Write write) {
  switch (write) {
    case Write::store: return "store";
    case Write::add: return "add";
    case Write::slots: return "slots";
  }
  return "?";
}

inline const char* name_of(Gather gather) {
  return gather == Gather::map ? "map" : "identity";
}

inline const char* name_of(ActivationSet set) {
  return set == ActivationSet::sloped ? "sloped" : "all";
}

/// Spares the compiler the wgmma instructions of other widths.
inline std::string instruction_choice(Instruction instruction, std::int32_t columns) {
  if (instruction != Instruction::wgmma) return {};
  return "#define PUMICE_WGMMA_COLUMNS " + std::to_string(columns) + "\n";
}

}   // namespace pumice::cuda
