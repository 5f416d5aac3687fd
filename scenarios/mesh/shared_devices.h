#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include "topology/cluster.h"

namespace tandem::scenarios {

/// Whether ranks of one part are taken to ranks of one part. `part` has, by rank, the lowest rank of its part, and `no_device`
/// for those of none, which have to be taken to such. Then the parts are permuted as well.
bool takes_parts_to_parts(const std::vector<std::uint32_t>& image, const std::vector<std::uint32_t>& part);

/// What GPUs of a regular cluster share: their node, their place in it, and the devices that they hang on. Ranks lie on GPUs in
/// order.
class SharedDevices {
 public:
  using ByRank = std::vector<std::uint32_t>;
  static constexpr std::size_t levels = std::tuple_size_v<decltype(Attachment::devices)>;

  SharedDevices(const Cluster& cluster, std::uint32_t ranks);

  /// Whether GPUs share what their images (by rank) share: then these are a map of nodes, NICs, leaves and pods as well, which
  /// takes rails to rails.
  bool go_to_shared(const ByRank& image) const;

  const std::array<ByRank, levels>& by_level() const { return devices_; }  ///< as of `Attachment`
  const ByRank& leaf() const { return devices_[leaf_level]; }  ///< its bundle; `no_device` where all hang on one switch

 private:
  static constexpr std::size_t leaf_level = 3;
  std::array<ByRank, levels> devices_;
  std::vector<ByRank> parts_;  ///< that tell something

  void add_part(ByRank part);
};

}  // namespace tandem::scenarios
