#include "runtime/base/forked_heap.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace tandem {

void copy_forked_heap(std::size_t most) {
  // Of all arenas: where threads have allocated, too, what follows begins before the heap, where nothing is mapped, and copies
  // nothing.
  const struct mallinfo2 heap = ::mallinfo2();
  const std::size_t used = heap.arena - heap.keepcost;  // which ends where the free piece on top begins
  if (used > most) return;
  auto* const begin = static_cast<std::byte*>(::sbrk(0)) - heap.arena;
  const std::size_t into_page = reinterpret_cast<std::uintptr_t>(begin) % static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
#ifdef MADV_POPULATE_WRITE  // Linux 5.14; an older kernel copies page by page
  ::madvise(begin - into_page, used + into_page, MADV_POPULATE_WRITE);
#endif
}

}  // namespace tandem
