#include "studies/sweep/shard.h"

#include <charconv>

namespace tandem::studies {

std::optional<Shard> parse_shard(const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec != std::errc{} || index.ptr == end || *index.ptr != '/') return std::nullopt;
  const auto count = std::from_chars(index.ptr + 1, end, shard.count);
  const bool is_shard = count.ec == std::errc{} && count.ptr == end && shard.index < shard.count;
  return is_shard ? std::optional(shard) : std::nullopt;
}

std::vector<PointId> points_of(const Shard& shard, std::vector<PointId> points) {
  std::erase_if(points, [&](const PointId& point) { return point.index % shard.count != shard.index; });
  return points;
}

}  // namespace tandem::studies
