#include "sim/measured_collectives.h"

namespace tandem::sim {

std::optional<Seconds> measured_time(std::span<const MeasuredCollective> measured, OpKind op, Bytes bytes, std::size_t members,
                                     std::size_t machines, const std::function<Seconds(Bytes)>& modelled) {
  if (op == OpKind::receive) op = OpKind::send;
  const MeasuredCollective* below = nullptr;
  const MeasuredCollective* above = nullptr;
  for (const MeasuredCollective& one : measured) {
    if (one.op != op || static_cast<std::size_t>(one.members) != members || static_cast<std::size_t>(one.machines) != machines)
      continue;
    if (one.bytes <= bytes && (below == nullptr || one.bytes > below->bytes)) below = &one;
    if (one.bytes >= bytes && (above == nullptr || one.bytes < above->bytes)) above = &one;
  }
  if (below == nullptr && above == nullptr) return std::nullopt;
  if (below != nullptr && above != nullptr) {
    if (below->bytes == above->bytes) return below->timing.median;
    const double part = static_cast<double>(bytes - below->bytes) / static_cast<double>(above->bytes - below->bytes);
    return below->timing.median + part * (above->timing.median - below->timing.median);
  }
  const MeasuredCollective& nearest = below != nullptr ? *below : *above;
  const Seconds of_nearest = modelled(nearest.bytes);
  return of_nearest > 0 ? nearest.timing.median / of_nearest * modelled(bytes) : nearest.timing.median;
}

}  // namespace tandem::sim
