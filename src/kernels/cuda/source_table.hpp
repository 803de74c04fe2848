// Sources that are made when first asked for and stay as long as the process lives.
#pragma once

#include <functional>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include <pumice/shared/tile_spec.h>

#include "jit/compile.hpp"

namespace pumice::cuda {

/// Specifications by their fingerprints.
template <class Spec> struct SpecHash {
  std::size_t operator()(const Spec& spec) const {
    return static_cast<std::size_t>(fingerprint(spec));
  }
};

/// Any thread may ask; readers share the lock, since every launch asks.
template <class Key, class Hash = std::hash<Key>> class SourceTable {
 public:
  /// The source of `key`, which `make(key)` gives.
  template <class Make> const jit::Source& get(const Key& key, Make&& make) {
    {
      const std::shared_lock lock(mutex_);
      const auto found = sources_.find(key);
      if (found != sources_.end()) return found->second;
    }
    jit::Source made = make(key);
    const std::unique_lock lock(mutex_);
    return sources_.try_emplace(key, std::move(made)).first->second;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<Key, jit::Source, Hash> sources_;   // whose addresses stay
};

/// "name_f16": the one for rows of `type`, whose text is `text(type)`.
const jit::Source& source_for(ElementType type, const char* name, std::string (*text)(ElementType),
                              bool writes_only_features = false);

}   // namespace pumice::cuda
