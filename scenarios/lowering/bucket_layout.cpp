#include "scenarios/lowering/bucket_layout.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/divide_up.h"

namespace tandem::scenarios {

BucketLayout lay_out_flat(const std::vector<std::int64_t>& sizes, std::int64_t owners, std::int64_t granularity) {
  BucketLayout layout;
  std::int64_t elements = 0;
  for (const std::int64_t size : sizes) {
    layout.offsets.push_back(elements);
    elements += size;
  }
  layout.slice = divide_up(elements, owners * granularity) * granularity;
  return layout;
}

BucketLayout lay_out_whole(const std::vector<std::int64_t>& sizes, std::int64_t owners, std::int64_t granularity) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return sizes[i]; });
  std::vector<std::int64_t> filled(static_cast<std::size_t>(owners)), owner_of(sizes.size());
  BucketLayout layout{.offsets = std::vector<std::int64_t>(sizes.size())};
  for (const std::size_t i : order) {
    const auto owner = std::ranges::min_element(filled);
    owner_of[i] = owner - filled.begin();
    layout.offsets[i] = *owner;
    *owner += sizes[i];
  }
  layout.slice = divide_up(std::ranges::max(filled), granularity) * granularity;
  for (std::size_t i = 0; i < sizes.size(); ++i) layout.offsets[i] += owner_of[i] * layout.slice;
  return layout;
}

}  // namespace tandem::scenarios
