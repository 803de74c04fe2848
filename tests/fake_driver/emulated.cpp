// Kernels that the fake compiler made: loaded from memory, run by the emulator of device code.
#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fake_driver/fake.hpp"
#include "support/device_emulator.hpp"

namespace pumice::fake {
namespace {

/// The length of an ELF file whose sections come last, as the linker writes it.
std::size_t length_of(const Elf64_Ehdr& header) {
  return header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
}

/// The functions of the emulator that kernels call are in this library, which was opened for its
/// caller alone.
void show_emulator() {
  static const bool shown = [] {
    Dl_info info{};
    static const int kHere = 0;
    return dladdr(&kHere, &info) != 0 &&
           dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD) != nullptr;
  }();
  if (!shown) throw std::runtime_error("the fake driver does not find itself");
}

}   // namespace

std::string& last_failure() {
  thread_local std::string text;
  return text;
}

void* load_emulated(const void* code) {
  // What stands for a kernel where none is compiled has the first letters alone.
  constexpr unsigned char kIdentity[] = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  if (std::memcmp(code, kIdentity, sizeof kIdentity) != 0) return nullptr;
  Elf64_Ehdr header;
  std::memcpy(&header, code, sizeof(header));
  if (header.e_machine != EM_X86_64 && header.e_machine != EM_AARCH64) return nullptr;
  show_emulator();
  // Stays open: a library is known by the name it was opened under.
  const int file = memfd_create("pumice kernel", MFD_CLOEXEC);
  const std::size_t bytes = length_of(header);
  if (file < 0 || write(file, code, bytes) != static_cast<ssize_t>(bytes)) {
    throw std::runtime_error("no memory for a kernel");
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  return library;
}

Emulated find_emulated(void* library, const std::string& name) {
  Emulated kernel;
  kernel.thread = reinterpret_cast<void (*)(const void*)>(dlsym(library, name.c_str()));
  const auto bytes =
      reinterpret_cast<unsigned long (*)()>(dlsym(library, (name + "_argument_bytes").c_str()));
  if (bytes != nullptr) kernel.argument_bytes = bytes();
  return kernel;
}

Work emulated_work(const std::string& name, const Emulated& kernel, const void* arguments,
                   const cuda::LaunchConfig& config) {
  std::vector<std::uint64_t> copy((kernel.argument_bytes + 7) / 8);
  std::memcpy(copy.data(), arguments, kernel.argument_bytes);
  const test::EmulatedShape shape{.blocks = config.grid_x,
                                  .blocks_y = static_cast<int>(config.grid_y),
                                  .threads = static_cast<int>(config.block_x),
                                  .shared_bytes = static_cast<int>(config.shared_bytes)};
  return [name, thread = kernel.thread, copy = std::move(copy), shape] {
    test::emulate_threads(shape, [&] { thread(copy.data()); },
                          {test::RunOrder::shuffled, test::RunOrder::shuffled});
    const std::string bad = take_bad_reads();
    if (!bad.empty()) throw std::runtime_error("kernel " + name + ": " + bad);
  };
}

}   // namespace pumice::fake
