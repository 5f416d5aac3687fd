#include "runtime/base/large_pages.h"

#include <sys/mman.h>

#include <cstdint>

namespace tandem {

void prefer_large_pages(void* begin, std::size_t bytes) {
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;  // of x86-64, and of aarch64 with pages of 4 KiB
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  // An error is one more wish that is not granted: a kernel without large pages.
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

}  // namespace tandem
