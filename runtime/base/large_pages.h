#pragma once

#include <cstddef>

namespace tandem {

/// Asks the kernel for large pages for so many bytes that are written soon, from the start to the end: it then gives 2 MiB at a
/// time, not 4 KiB. A wish, which may have no effect.
void prefer_large_pages(void* begin, std::size_t bytes);

/// Asks for large pages for so many bytes in one piece of the heap, free or new, which this thread's next allocations come from:
/// what it allocates in small pieces. For programs whose heap keeps what is freed (M_MMAP_THRESHOLD, M_TRIM_THRESHOLD).
void prefer_large_pages_for_heap(std::size_t bytes);
/// More than what most steps allocate in small pieces.
inline constexpr std::size_t small_pieces_of_most_steps = std::size_t{32} << 20;

}  // namespace tandem
