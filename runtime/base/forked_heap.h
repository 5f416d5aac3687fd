#pragma once

#include <cstddef>

namespace tandem {

/// For a process that was just forked and goes on to allocate: copies the heap that it shares with its parent at once, where that
/// is no more than so many bytes. The kernel would copy each page when it is first written, and interrupt the process's other
/// threads for each. Of a larger heap a child reads the most part, which it needs no copy of.
void copy_forked_heap(std::size_t most);

}  // namespace tandem
