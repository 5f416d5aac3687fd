#include "runtime/ops/routing.h"

#include <algorithm>

namespace tandem {

std::vector<std::int32_t> offsets_in_block(const RoutingAttributes& attributes) {
  const std::size_t per_part = attributes.slots.size() / static_cast<std::size_t>(attributes.parts);
  std::vector<std::int32_t> offsets(attributes.slots.size(), 0);
  for (std::size_t e = 1; e < offsets.size(); ++e) {
    if (e % per_part != 0) offsets[e] = offsets[e - 1] + attributes.slots[e - 1];
  }
  return offsets;
}

std::size_t expert_of(std::int32_t slot, const RoutingAttributes& attributes, const std::vector<std::int32_t>& offsets) {
  if (slot < 0) return static_cast<std::size_t>(-1 - slot);
  const auto per_part = static_cast<std::ptrdiff_t>(offsets.size() / static_cast<std::size_t>(attributes.parts));
  const auto begin = offsets.begin() + slot / (attributes.groups * attributes.block) * per_part;
  return static_cast<std::size_t>(std::upper_bound(begin, begin + per_part, slot % attributes.block) - offsets.begin() - 1);
}

}  // namespace tandem
