#include "runtime/base/large_pages.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

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
  constexpr int usual_growth = 128 << 10;  // of glibc
  // One more piece than there is room for makes the heap grow, by as much as is said beside it.
  char* const before = static_cast<char*>(::sbrk(0));
  mallopt(M_TOP_PAD, static_cast<int>(bytes));
  void* volatile piece = std::malloc(std::size_t{1} << 20);  // else a compiler may leave out what is freed at once
  std::free(piece);
  mallopt(M_TOP_PAD, usual_growth);
  char* const after = static_cast<char*>(::sbrk(0));
  prefer_large_pages(before, static_cast<std::size_t>(after - before));
}

}  // namespace tandem
