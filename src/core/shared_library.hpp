// A library of someone else's that is opened when it is first needed, and may not be there.
#pragma once

#include <string>
#include <vector>

namespace pumice {

/// What is looked for, in the words of a message.
struct WantedLibrary {
  const char* name;           // "NVRTC"
  const char* vintage = "";   // " of CUDA 12 or later"
  const char* remedy = "";    // "; install CUDA's libnvrtc, …"
};

/// The first of several candidates that is there; it stays open for as long as the process lives.
/// Never throws: problem() says what is wrong.
class SharedLibrary {
 public:
  SharedLibrary(const WantedLibrary& wanted, const std::vector<std::string>& candidates);

  bool is_open() const { return library_ != nullptr; }
  /// The candidate that was opened, and the file that it was loaded from.
  const std::string& candidate() const { return candidate_; }
  std::string file() const;

  /// Null, and false, where an open library does not have the function.
  template <class Function> bool find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(address_of(name));
    return function != nullptr;
  }
  /// For a function that it has to have.
  template <class Function> void require(const char* name, Function& function) {
    if (!find(name, function) && missing_ == nullptr) missing_ = name;
  }
  /// The first function that was required and is not there, or null.
  const char* missing() const { return missing_; }
  /// Why it cannot be used: nothing could be opened, or a function is missing; empty when it can.
  std::string problem() const;

 private:
  void* address_of(const char* name) const;

  WantedLibrary wanted_;
  void* library_ = nullptr;
  const char* missing_ = nullptr;
  std::string candidate_;
  std::string refusal_;   // the loader's, of the first candidate
};

}   // namespace pumice
