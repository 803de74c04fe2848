// Part of every program that is built with AddressSanitizer: the options it runs with by default.
#include <sanitizer/asan_interface.h>

/// Up to GCC 13 and LLVM 16 LeakSanitizer takes a block of thread-local memory that happens to lie
/// 16 bytes into a page for one of glibc before 2.25, reads an address and a length before it, and
/// may crash there at the end of the program: https://github.com/google/sanitizers/issues/1409.
/// Libraries that are opened at run time, as NVRTC is, have such memory. The price: what only such
/// memory points to would be called a leak; nothing here is.
extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  return "intercept_tls_get_addr=0";
}
