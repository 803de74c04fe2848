// Sources that are made when first asked for and stay as long as the process lives.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include <pumice/shared/tile_spec.h>

#include "jit/compile.hpp"

namespace pumice::cuda {

/// Any thread may ask.
template <class Key> class SourceTable {
 public:
  /// The source of `key`, which `make(key)` gives.
  template <class Make> const jit::Source& get(const Key& key, Make&& make) {
    const std::scoped_lock lock(mutex_);
    for (const auto& [known, source] : sources_) {
      if (known == key) return source;
    }
    return sources_.emplace_back(key, make(key)).second;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<Key, jit::Source>> sources_;   // addresses stay
};

/// "name_f16": the one for rows of `type`, whose text is `text(type)`.
const jit::Source& source_for(ElementType type, const char* name, std::string (*text)(ElementType));

}   // namespace pumice::cuda
