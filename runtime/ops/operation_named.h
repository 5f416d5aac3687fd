#pragma once

#include <optional>
#include <string_view>

#include "runtime/ops/operation.h"

namespace tandem {

/// Returns the operation of that name, or nothing where there is none.
inline std::optional<OpKind> operation_named(std::string_view name) {
  for (std::size_t i = 0; i < op_kind_count; ++i)
    if (operation(static_cast<OpKind>(i)).name == name) return static_cast<OpKind>(i);
  return {};
}

}  // namespace tandem
