// What a kernel is given is copied as bytes: nothing that owns may be inside.
// fails with: arguments travel as bytes
#include <string>

#include "jit/launch.hpp"

struct Arguments {
#ifdef PUMICE_MISUSE
  std::string name;
#else
  const char* name = nullptr;
#endif
};

void launch(const pumice::jit::Kernel& kernel, pumice::StreamView stream) {
  pumice::jit::launch(kernel, {}, stream, Arguments{});
}
