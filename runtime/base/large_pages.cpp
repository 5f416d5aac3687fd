#include "runtime/base/large_pages.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace tandem {

void prefer_large_pages(void* begin, std::size_t bytes) {
  constexpr std::uintptr_t page = std::uintptr_t{2} << 20;  // of x86-64, and of aarch64 with pages of 4 KiB
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  // An error is one more wish that is not granted: a kernel without large pages.
  if (first < end) ::madvise(static_cast<std::byte*>(begin) + (first - address), end - first, MADV_HUGEPAGE);
}

void prefer_large_pages_for_heap(std::size_t bytes) {
  void* volatile piece = std::malloc(bytes);  // else a compiler may leave out what is freed at once
  if (piece != nullptr) prefer_large_pages(piece, bytes);
  std::free(piece);
}

}  // namespace tandem
