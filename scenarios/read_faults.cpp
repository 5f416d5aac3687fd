#include <algorithm>

#include "scenarios/reader.h"
#include "scenarios/sections.h"

namespace tandem {
namespace {

SlowGpu read_slow_gpu(const YamlNode& node) {
  const Reader slow_gpu(node, "faults.slow_gpu", {"rank", "factor"});
  return {.rank = slow_gpu.integer("rank", {0, max_gpus - 1}), .factor = slow_gpu.number("factor", {1e-6, 1e6})};
}

}  // namespace

std::vector<SlowGpu> read_faults(const YamlNode& node) {
  const Reader faults(node, "faults", {"slow_gpu", "dead_link", "slow_link", "jitter", "mtbf"});
  faults.not_yet({"dead_link", "slow_link", "jitter", "mtbf"});
  std::vector<SlowGpu> slow_gpus;
  if (!faults.has("slow_gpu")) return slow_gpus;
  const YamlNode& given = faults.child("slow_gpu");
  if (given.kind != YamlNode::Kind::sequence) return {read_slow_gpu(given)};
  for (const YamlNode& item : given.items) {
    slow_gpus.push_back(read_slow_gpu(item));
    const std::int64_t rank = slow_gpus.back().rank;
    if (std::ranges::count(slow_gpus, rank, &SlowGpu::rank) > 1)
      throw InputError(item.place, "rank " + std::to_string(rank) + " stands in faults.slow_gpu twice, expected it once");
  }
  return slow_gpus;
}

}  // namespace tandem
