// What was made of a pattern for products that ask for it again, kept as long as the pattern.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace pumice {

/// By name, each of one type. For any number of threads: of two that make the same at a time, one
/// is kept.
class KeptCuts {
 public:
  /// What is kept under `name`, else what `make()` returns, a T.
  template <class T, class Make>
  std::shared_ptr<const T> get(const std::string& name, Make&& make) {
    if (std::shared_ptr<const void> kept = find(name))
      return std::static_pointer_cast<const T>(std::move(kept));
    return std::static_pointer_cast<const T>(keep(name, std::make_shared<const T>(make())));
  }

  bool has(const std::string& name) const { return find(name) != nullptr; }

 private:
  std::shared_ptr<const void> find(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    const auto found = kept_.find(name);
    return found == kept_.end() ? nullptr : found->second;
  }
  std::shared_ptr<const void> keep(const std::string& name, std::shared_ptr<const void> made) {
    const std::scoped_lock lock(mutex_);
    return kept_.emplace(name, std::move(made)).first->second;
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const void>> kept_;
};

}   // namespace pumice
