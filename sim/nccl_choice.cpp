#include "sim/nccl_choice.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "sim/ring_latency.h"
#include "sim/scaled_up.h"

namespace tandem {
namespace {

constexpr BytesPerSecond no_limit = std::numeric_limits<double>::infinity();
constexpr std::size_t simple = static_cast<std::size_t>(Protocol::simple);

class Tuning {
 public:
  Tuning(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture)
      : reduces_all_(kind == OpKind::all_reduce),
        bytes_(bytes),
        ranks_(static_cast<std::uint32_t>(members)),
        members_(static_cast<double>(members)),
        nodes_(static_cast<double>(layout.nodes)),
        levels_(static_cast<double>(std::bit_width(layout.nodes) - 1)),
        layout_(layout),
        limits_(constants_.limits[static_cast<std::size_t>(architecture)]) {}

  CollectiveCost best() {
    for (std::uint32_t index = 0; index < layout_.paths.size(); ++index) {
      const Paths& paths = layout_.paths[index];
      if (paths.algorithm == Algorithm::ring) try_ring(index);
      if (paths.algorithm == Algorithm::tree && reduces_all_) try_tree(index);
      if (paths.algorithm == Algorithm::nvls && reduces_all_ && limits_.nvls_efficiency > 0) try_nvls(index);
    }
    return best_;
  }

 private:
  const NcclConstants& constants_ = nccl_constants();
  const bool reduces_all_;
  const Bytes bytes_;
  const std::uint32_t ranks_;
  const double members_, nodes_, levels_;
  const Layout& layout_;
  const NcclConstants::Limits& limits_;
  struct Hops {
    Seconds start, intra, inter;
  };
  Seconds least_ = std::numeric_limits<double>::infinity();
  CollectiveCost best_;

  std::size_t by_nodes() const { return std::min<std::size_t>(layout_.nodes, 3) - 1; }
  double share(const NcclConstants::Way& way, std::size_t p) const {
    return layout_.nodes == 1 ? way.one_node[p] : way.several[p];
  }
  Seconds intra(const NcclConstants::Way& way, std::size_t p) const {
    return std::max(0.0, way.nvlink[p] + layout_.intra_latency - constants_.ring.nvlink[simple]);
  }
  Seconds inter(const NcclConstants::Way& way, std::size_t p) const {
    return std::max(0.0, way.net[p] + layout_.inter_latency - constants_.ring.net[simple]);
  }
  double channels() const {
    return layout_.nodes == 1 ? constants_.channels_in_node
                              : constants_.channels_per_rail * std::max(1.0, std::floor(members_ / nodes_));
  }

  void try_ring(std::uint32_t index) {
    const std::uint32_t passes = reduces_all_ ? 2 : 1;
    const auto hops = static_cast<double>(passes * (ranks_ - 1));
    const double between = passes * (nodes_ - 1);
    const Bytes data = scaled_up(bytes_, Bytes{passes} * (ranks_ - 1), Bytes{ranks_} * layout_.paths[index].channels);
    const NcclConstants::Way& ring = constants_.ring;
    const BytesPerSecond most[] = {limits_.ll[by_nodes()], channels() * limits_.ring_ll128[by_nodes()], no_limit};
    for (std::size_t p = 0; p < protocol_count; ++p) {
      const Hops hop{ring.base[p], intra(ring, p), inter(ring, p)};
      const Seconds predicted = hop.start + (hops - between) * hop.intra + between * hop.inter;
      if (consider(index, p, hop, predicted, data, share(ring, p), most[p]))
        best_.latency = ring_latency(passes, ranks_, layout_, best_);
    }
    if (reduces_all_ || layout_.nodes == 1 || ranks_ != layout_.nodes) return;
    const NcclConstants::Way& pat = constants_.pat;
    constexpr Seconds per_rank = 2.8e-6;
    constexpr double hops_under_way = 3.5;
    const Seconds of_hops = levels_ * inter(pat, simple) / hops_under_way + per_rank * members_;
    const Hops hop{pat.base[simple], 0, of_hops / hops};  // played as a ring
    consider(index, simple, hop, hop.start + of_hops, data, share(pat, simple), no_limit);
  }

  /// A byte of the vector goes up and down: the bus carries two.
  void try_tree(std::uint32_t index) {
    const NcclConstants::Way& tree = constants_.tree;
    const Bytes data = scaled_up(bytes_, 1, layout_.paths[index].channels);
    const BytesPerSecond most[] = {limits_.ll[by_nodes()], channels() * limits_.tree_ll128[by_nodes()],
                                   channels() * limits_.tree_simple[by_nodes()]};
    for (std::size_t p = 0; p < protocol_count; ++p) {
      const Hops hop{tree.base[p], intra(tree, p), inter(tree, p)};
      const Seconds latency = hop.start + 2 * ((members_ / nodes_ - 1) * hop.intra + levels_ * hop.inter);
      consider(index, p, hop, latency, data, share(tree, p), most[p] / 2);
    }
  }

  void try_nvls(std::uint32_t index) {
    const Paths& paths = layout_.paths[index];
    const Hops hop{constants_.nvls.base[simple], intra(constants_.nvls, simple), 0};
    const Bytes data = scaled_up(bytes_, 1, paths.channels);
    if (!consider(index, simple, hop, hop.start + hop.intra, data, limits_.nvls_efficiency, no_limit) || paths.bandwidth == 0)
      return;
    best_.rate_limit = limits_.achieved_nvls_efficiency * paths.bandwidth;
    best_.latency += static_cast<double>(std::min(data, constants_.nvls_piece)) / best_.rate_limit;
  }

  /// `data` bytes over each channel of a path, at `share` of its links' bandwidth and with all channels at no more than `most`.
  /// True if it is the best so far.
  bool consider(std::uint32_t index, std::size_t p, const Hops& hops, Seconds latency, Bytes data, double share,
                BytesPerSecond most) {
    const Paths& paths = layout_.paths[index];
    const BytesPerSecond links = paths.bandwidth > 0 ? paths.bandwidth : no_limit;
    const BytesPerSecond rate = std::min(share * links, most / paths.channels);
    const Seconds time = latency + static_cast<double>(data) / rate;
    if (!(time < least_)) return false;
    least_ = time;
    const double wire = constants_.data_per_wire_byte[p];
    const bool below_links = rate / wire < links * (1 - 1e-9);
    best_ = {.latency = latency,
             .bytes_per_channel = static_cast<Bytes>(std::ceil(static_cast<double>(data) / wire)),
             .paths = index,
             .protocol = static_cast<Protocol>(p),
             .rate_limit = below_links ? rate / wire : 0,
             .limit_is_share = share * links <= most / paths.channels,
             .start = hops.start,
             .intra_latency = hops.intra,
             .inter_latency = hops.inter};
    return true;
  }
};

}  // namespace

CollectiveCost nccl_choice(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture) {
  return Tuning(kind, bytes, members, layout, architecture).best();
}

}  // namespace tandem
