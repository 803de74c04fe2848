// Reading and writing a chunk of up to eight neighbouring channels of a row, in accesses as wide as
// the row's alignment allows. Narrow rows (3, 4, 5 channels …) take narrow accesses: they make up
// the first layer of a network, whose time is the launch's, and a padded copy of them would cost
// another launch and memory that nobody owns in a captured graph.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/thread/convert.h>

namespace pumice {

/// What one access moves.
template <int32_t kWords> struct alignas(kWords * 4) Words { uint32_t word[kWords]; };

/// Reads what nobody writes while the kernel runs: the compiler may move such a read across writes,
/// which it may not with others, so that several are under way at a time. `volatile` keeps it from
/// reading before the check that there is anything: without, scales of narrow rows were read from
/// null.
template <int32_t kWords> PUMICE_DEVICE Words<kWords> read_only(const Words<kWords>* from) {
#if defined(__CUDACC__)
  Words<kWords> words;
  if constexpr (kWords == 4) {
    asm volatile(PUMICE_READ_ONLY_LOAD ".v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]),
                   "=r"(words.word[3])
                 : "l"(from));
  } else if constexpr (kWords == 2) {
    asm volatile(PUMICE_READ_ONLY_LOAD ".v2.u32 {%0, %1}, [%2];"
                 : "=r"(words.word[0]), "=r"(words.word[1])
                 : "l"(from));
  } else {
    asm volatile(PUMICE_READ_ONLY_LOAD ".u32 %0, [%1];" : "=r"(words.word[0]) : "l"(from));
  }
  return words;
#else
  return *from;
#endif
}

template <int32_t kCount> PUMICE_DEVICE void fill(float (&value)[kCount], float with) {
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i)
    value[i] = with;
}

PUMICE_DEVICE void load_four(float* value, const float* from) {
  const Words<4> words = *reinterpret_cast<const Words<4>*>(from);
  PUMICE_UNROLL
  for (int32_t i = 0; i < 4; ++i)
    value[i] = bits_to_float(words.word[i]);
}

PUMICE_DEVICE void store_four(float* to, const float (&value)[4]) {
  *reinterpret_cast<Words<4>*>(to) = {{float_to_bits(value[0]), float_to_bits(value[1]),
                                       float_to_bits(value[2]), float_to_bits(value[3])}};
}

PUMICE_DEVICE void store_pair(float* to, float first, float second) {
  *reinterpret_cast<Words<2>*>(to) = {{float_to_bits(first), float_to_bits(second)}};
}

/// The values in `words`, the inverse of `narrow_words`.
template <ElementType kType, int32_t kWords>
PUMICE_DEVICE void widen_words(const Words<kWords>& words, float* value) {
  PUMICE_UNROLL
  for (int32_t i = 0; i < kWords; ++i) {
    if constexpr (element_bytes(kType) == 4) {
      value[i] = bits_to_float(words.word[i]);
    } else {
      value[2 * i] = widen_half<kType>(static_cast<uint16_t>(words.word[i]));
      value[2 * i + 1] = widen_half<kType>(static_cast<uint16_t>(words.word[i] >> 16));
    }
  }
}

template <ElementType kType, int32_t kWords>
PUMICE_DEVICE Words<kWords> narrow_words(const float* value) {
  Words<kWords> words;
  PUMICE_UNROLL
  for (int32_t i = 0; i < kWords; ++i) {
    if constexpr (element_bytes(kType) == 4) {
      words.word[i] = float_to_bits(value[i]);
    } else {
      words.word[i] = pack_half2<kType>(value[2 * i], value[2 * i + 1]);
    }
  }
  return words;
}

/// value[i] = row[element + i] for i < count, widened; the rest is left as it is. kAlign: bytes
/// that every row, and count, are a multiple of, 2 to 16. kReadOnly: see read_only.
template <ElementType kType, int32_t kAlign, bool kReadOnly = false, int32_t kCount>
PUMICE_DEVICE void load_chunk(const void* data, int64_t element, float (&value)[kCount],
                              int32_t count) {
  constexpr int32_t kStep = kAlign / element_bytes(kType);
  const char* from = static_cast<const char*>(data) + element * element_bytes(kType);
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; i += kStep) {
    if (i >= count) break;
    if constexpr (kAlign == 2) {
      value[i] = widen_half<kType>(*reinterpret_cast<const uint16_t*>(from + i * 2));
    } else {
      const auto* at = reinterpret_cast<const Words<kAlign / 4>*>(from + i * element_bytes(kType));
      widen_words<kType>(kReadOnly ? read_only(at) : *at, &value[i]);
    }
  }
}

/// 16 bytes of a row as they are read, half the registers of what they stand for in f16.
template <ElementType kType> struct RawChunk {
  static constexpr int32_t kCount = 16 / element_bytes(kType);
  Words<4> words;

  /// All elements where kAlign, of which row and count are a multiple as in load_chunk, is 16;
  /// otherwise those below `count`, and the rest is undefined.
  template <int32_t kAlign> PUMICE_DEVICE void load(const char* from, int32_t count) {
    if constexpr (kAlign == 16) {
      words = read_only(reinterpret_cast<const Words<4>*>(from));
    } else {
      constexpr int32_t kStep = kAlign / element_bytes(kType);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; i += kStep) {
        if (i < count) load_step<kAlign>(from + i * element_bytes(kType), i);
      }
    }
  }
  PUMICE_DEVICE void widen(float (&value)[kCount]) const { widen_words<kType>(words, value); }

 private:
  template <int32_t kAlign> PUMICE_DEVICE void load_step(const char* from, int32_t i) {
    if constexpr (kAlign == 2) {
      const uint32_t half = *reinterpret_cast<const uint16_t*>(from);
      words.word[i / 2] = i % 2 == 0 ? half : words.word[i / 2] | half << 16;
    } else {
      const auto step = read_only(reinterpret_cast<const Words<kAlign / 4>*>(from));
      PUMICE_UNROLL
      for (int32_t w = 0; w < kAlign / 4; ++w)
        words.word[i * element_bytes(kType) / 4 + w] = step.word[w];
    }
  }
};

/// row[element + i] = value[i], rounded, for i < count.
template <ElementType kType, int32_t kAlign, int32_t kCount>
PUMICE_DEVICE void store_chunk(void* data, int64_t element, const float (&value)[kCount],
                               int32_t count) {
  constexpr int32_t kStep = kAlign / element_bytes(kType);
  char* to = static_cast<char*>(data) + element * element_bytes(kType);
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; i += kStep) {
    if (i >= count) break;
    if constexpr (kAlign == 2) {
      *reinterpret_cast<uint16_t*>(to + i * 2) =
          static_cast<uint16_t>(pack_half2<kType>(value[i], 0.0f));
    } else {
      *reinterpret_cast<Words<kAlign / 4>*>(to + i * element_bytes(kType)) =
          narrow_words<kType, kAlign / 4>(&value[i]);
    }
  }
}

/// One element of an array of any type.
PUMICE_DEVICE float load_element(ElementType type, const void* data, int64_t element) {
  float one[1] = {0.0f};
  switch (type) {
    case ElementType::f16: load_chunk<ElementType::f16, 2>(data, element, one, 1); break;
    case ElementType::bf16: load_chunk<ElementType::bf16, 2>(data, element, one, 1); break;
    default: load_chunk<ElementType::f32, 4>(data, element, one, 1); break;
  }
  return one[0];
}

/// The same, rounded to the type.
PUMICE_DEVICE void store_element(ElementType type, void* out, int64_t element, float value) {
  const float one[1] = {value};
  switch (type) {
    case ElementType::f16: return store_chunk<ElementType::f16, 2>(out, element, one, 1);
    case ElementType::bf16: return store_chunk<ElementType::bf16, 2>(out, element, one, 1);
    default: return store_chunk<ElementType::f32, 4>(out, element, one, 1);
  }
}

/// One reduction of 16 bytes where there is such an instruction; the L2 takes 3.1 TB/s either way
/// (H200), but four times the instructions cost issue slots.
PUMICE_DEVICE void add_four(float* to, const float (&value)[4]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(to), "f"(value[0]),
               "f"(value[1]), "f"(value[2]), "f"(value[3])
               : "memory");
#else
  for (int32_t i = 0; i < 4; ++i)
    atomic_add(to + i, value[i]);
#endif
}

/// to[i] += value[i] for i < count, atomically and in no particular order.
template <int32_t kAlign>
PUMICE_DEVICE void add_chunk(float* to, const float (&value)[4], int32_t count) {
  if constexpr (kAlign == 16) {
    add_four(to, value);
  } else {
    PUMICE_UNROLL
    for (int32_t i = 0; i < 4; ++i) {
      if (i < count) atomic_add(to + i, value[i]);
    }
  }
}

}   // namespace pumice
