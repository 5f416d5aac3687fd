#pragma once

#include <cstddef>
#include <cstdint>

namespace tandem {

/// Has the processor fetch an element, without waiting for it. It need not be there.
template <typename Items>
void fetch(const Items& items, std::size_t at) {
  __builtin_prefetch(items.data() + at);
}

/// Has the processor fetch what lies two cache lines behind an element, without waiting for it: for several walks through large
/// arrays that take turns, more of them than the processor itself follows. Nothing need be there.
template <typename Items>
void fetch_ahead(const Items& items, std::size_t at) {
  constexpr std::uintptr_t bytes = 128;
  __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(items.data() + at) + bytes));
}

}  // namespace tandem
