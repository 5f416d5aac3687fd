#include "sim/nccl_choice.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "sim/nccl_channels.h"
#include "sim/ring_latency.h"
#include "sim/scaled_up.h"

namespace tandem::sim {
namespace {

constexpr BytesPerSecond no_limit = std::numeric_limits<double>::infinity();
constexpr std::size_t simple = static_cast<std::size_t>(Protocol::simple);

class Tuning {
 public:
  Tuning(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture)
      : reduces_all_(kind == OpKind::all_reduce),
        all_gather_(kind == OpKind::all_gather),
        bytes_(bytes),
        ranks_(static_cast<std::uint32_t>(members)),
        members_(static_cast<double>(members)),
        nodes_(static_cast<double>(layout.nodes)),
        levels_(static_cast<double>(std::bit_width(layout.nodes) - 1)),
        layout_(layout),
        architecture_(static_cast<std::size_t>(architecture)) {}

  CollectiveCost best();

 private:
  const NcclConstants& constants_ = nccl_constants();
  const NcclConstants::Way& ring_ = constants_.way("ring");  ///< whose hops are the layout's
  /// An algorithm of NCCL: a row of `candidates`.
  struct Candidate {
    std::string_view name;  ///< as in nccl.csv
    Algorithm paths;        ///< the paths of the layout that it runs on
    bool all_reduce;        ///< it does them
    bool gathers;           ///< it does all-gathers and reduce-scatters
    /// Considers it by the layout's paths of that index.
    void (Tuning::*consider)(std::uint32_t index, const NcclConstants::Way& way);
  };
  static const Candidate candidates[];

  const bool reduces_all_, all_gather_;
  const Bytes bytes_;
  const std::uint32_t ranks_;
  const double members_, nodes_, levels_;
  const Layout& layout_;
  const std::size_t architecture_;
  const NcclConstants::Limits& limits_ = constants_.limits[architecture_];
  const NcclConstants::Channels& channels_ = constants_.channels[architecture_];
  const NcclConstants::Measured& measured_ = constants_.ring_in_node[architecture_];
  struct Hops {
    Seconds start, intra, inter;
  };
  Seconds least_ = std::numeric_limits<double>::infinity();
  CollectiveCost best_;

  std::size_t by_nodes() const { return std::min<std::size_t>(layout_.nodes, 3) - 1; }
  double share(const NcclConstants::Way& way, std::size_t p) const {
    return layout_.nodes == 1 ? way.one_node[p] : way.several[p];
  }
  /// Returns what a channel carries at most.
  BytesPerSecond channel_limit(const NcclConstants::Way& way, Protocol protocol) const {
    return way.channel_limits[architecture_][static_cast<std::size_t>(protocol)][by_nodes()];
  }
  Seconds intra(const NcclConstants::Way& way, std::size_t p) const {
    return std::max(0.0, way.nvlink[p] + layout_.intra_latency - ring_.nvlink[simple]);
  }
  Seconds inter(const NcclConstants::Way& way, std::size_t p) const {
    return std::max(0.0, way.net[p] + layout_.inter_latency - ring_.net[simple]);
  }
  /// NCCL limits each of the rings and trees that it finds, and uses twice as many (src/graph/connect.cc).
  double channels() const { return most_channels(ranks_, layout_, channels_) / 2.0; }

  /// Returns the hops of a ring. Over nodes, the host posts every step.
  Hops ring_hops(const NcclConstants::Way& way, std::size_t p) const {
    const Seconds post = layout_.nodes == 1 ? 0 : constants_.net_overhead * (p == simple ? 3 : 1);
    return {way.base[p], std::max(intra(way, p), post), inter(way, p)};
  }
  /// Returns by how much NCCL stretches a ring's latency in its prediction: by which it goes over to trees.
  double plateau(std::size_t p) const {
    constexpr Bytes least = 64;  // of a member and channel
    if (p != simple || layout_.nodes == 1 || !reduces_all_) return 1;
    const Bytes parts = Bytes{most_channels(ranks_, layout_, channels_)} * ranks_;
    return parts > 0 && bytes_ / parts >= least ? limits_.plateau : 1;
  }

  void ring(std::uint32_t index, const NcclConstants::Way& way) {
    const std::uint32_t passes = reduces_all_ ? 2 : 1;
    const auto hops = static_cast<double>(passes * (ranks_ - 1));
    const double between = passes * (nodes_ - 1);
    const Bytes data = scaled_up(bytes_, Bytes{passes} * (ranks_ - 1), Bytes{ranks_} * layout_.paths[index].channels);
    const BytesPerSecond most[] = {limits_.ll[by_nodes()], channels() * channel_limit(way, Protocol::ll128), no_limit};
    for (std::size_t p = 0; p < protocol_count; ++p) {
      const Hops hop = ring_hops(way, p);
      const Seconds predicted = hop.start + (hops - between) * hop.intra + between * hop.inter;
      if (!consider(index, p, hop, plateau(p) * predicted, data, share(way, p), most[p])) continue;
      if (layout_.nodes == 1) as_measured(p, static_cast<double>(passes * (ranks_ - 1)));
      best_.latency = ring_latency(passes, ranks_, layout_, best_);
    }
  }

  /// PAT serves one GPU per node, over the ring's paths.
  void pat(std::uint32_t index, const NcclConstants::Way& way) {
    if (layout_.nodes == 1 || ranks_ != layout_.nodes) return;
    const Bytes data = scaled_up(bytes_, Bytes{ranks_ - 1}, Bytes{ranks_} * layout_.paths[index].channels);
    const Seconds of_hops = levels_ * inter(way, simple) / constants_.pat_hops_under_way + constants_.pat_per_rank * members_;
    const Hops hop{way.base[simple], 0, of_hops / static_cast<double>(ranks_ - 1)};  // played as a ring
    consider(index, simple, hop, hop.start + of_hops, data, share(way, simple), no_limit);
  }

  /// Gives the best so far, a ring of `hops` messages in one node, the times that were measured of its protocol.
  void as_measured(std::size_t p, double hops) {
    if (measured_.base[p] == 0) return;
    const Paths& paths = layout_.paths[best_.paths];
    best_.start = measured_.base[p];
    best_.intra_latency = std::max(0.0, measured_.hop[p] + layout_.intra_latency - ring_.nvlink[simple]);
    if (paths.bandwidth == 0) return;
    const double share = all_gather_ && measured_.gather_share[p] > 0 ? measured_.gather_share[p] : measured_.share[p];
    if (share > 0) {
      const double of_wire = share / constants_.data_per_wire_byte[p];
      best_.rate_limit = of_wire < 1 ? of_wire * paths.bandwidth : 0;
      best_.limit_is_share = true;
    }
    if (measured_.channel_rate[p] > 0) {
      const BytesPerSecond of_channels =
          ring_channels(bytes_, ranks_, layout_, static_cast<Protocol>(p), channels_) * measured_.channel_rate[p];
      const BytesPerSecond on_wire = of_channels / constants_.data_per_wire_byte[p];
      if (on_wire < (best_.rate_limit > 0 ? best_.rate_limit : paths.bandwidth)) {
        best_.rate_limit = on_wire;
        best_.limit_is_share = false;
      }
    }
    const BytesPerSecond rate = best_.rate_limit > 0 ? best_.rate_limit : paths.bandwidth;
    const double message = static_cast<double>(best_.bytes_per_channel) / hops;
    best_.intra_latency = std::max(best_.intra_latency, measured_.least_hop[p] - message / rate);
    best_.start += measured_.fill[p] * std::min(message, most_filled(p)) / rate;
  }
  /// Returns the longest message that is filled: that of one of NCCL's channels, times the channels that a path in one node
  /// stands for.
  double most_filled(std::size_t p) const {
    return static_cast<double>(constants_.longest_fill) * channels_.in_node / constants_.data_per_wire_byte[p];
  }

  /// A byte of the vector goes up and down: the bus carries two.
  void tree(std::uint32_t index, const NcclConstants::Way& way) {
    const Bytes data = scaled_up(bytes_, 1, layout_.paths[index].channels);
    const BytesPerSecond most[] = {limits_.ll[by_nodes()], channels() * channel_limit(way, Protocol::ll128),
                                   channels() * channel_limit(way, Protocol::simple)};
    for (std::size_t p = 0; p < protocol_count; ++p) {
      const Hops hop{way.base[p], intra(way, p), inter(way, p)};
      const Seconds latency = hop.start + 2 * ((members_ / nodes_ - 1) * hop.intra + levels_ * hop.inter);
      const double correction = constants_.tree_correction(static_cast<Protocol>(p), bytes_);
      consider(index, p, hop, latency, data, correction * share(way, p), correction * most[p] / 2);
    }
  }

  void nvls(std::uint32_t index, const NcclConstants::Way& way) {
    if (limits_.nvls_efficiency == 0) return;
    const Paths& paths = layout_.paths[index];
    const Hops hop{way.base[simple], intra(way, simple), 0};
    const Bytes data = scaled_up(bytes_, 1, paths.channels);
    if (!consider(index, simple, hop, hop.start + hop.intra, data, limits_.nvls_efficiency, no_limit) || paths.bandwidth == 0)
      return;
    best_.rate_limit = limits_.achieved_nvls_efficiency * paths.bandwidth;
    best_.latency += first_pieces(data, channels_.nvls, paths);
  }

  /// Returns what the first pieces of the GPUs of a node take over each channel of a path, at the rate of the best so far.
  Seconds first_pieces(Bytes data, std::int32_t channels, const Paths& paths) const {
    const Bytes pieces = scaled_up(constants_.nvls_piece * channels, Bytes{ranks_ / layout_.nodes}, Bytes{paths.channels});
    return static_cast<double>(std::min(data, pieces)) / best_.rate_limit;
  }

  void nvls_tree(std::uint32_t index, const NcclConstants::Way& way) {
    if (limits_.nvls_efficiency == 0) return;
    const Paths& paths = layout_.paths[index];
    const Hops hop{way.base[simple], intra(way, simple), inter(way, simple)};
    const Bytes data = scaled_up(bytes_, 1, paths.channels);
    const auto of_links = [&](double efficiency, double rails) {
      return std::min(efficiency * paths.in_node, rails * paths.between_nodes) / paths.bandwidth;
    };
    const double share = paths.bandwidth > 0 ? of_links(limits_.nvls_efficiency, 1) : 1;
    // There is one channel for each GPU of a node.
    const double gpus = members_ / nodes_;
    const BytesPerSecond most = channel_limit(way, Protocol::simple) * gpus / 2;
    const Seconds latency = hop.start + hop.intra + 2 * levels_ * hop.inter;
    if (!consider(index, simple, hop, latency, data, share, most) || paths.bandwidth == 0) return;
    const bool few_rails = limits_.nvls_tree_rails > 0 && limits_.nvls_tree_rails < gpus;
    const double rails = few_rails ? limits_.nvls_tree_rails / gpus : 1;
    const BytesPerSecond achieved = of_links(limits_.achieved_nvls_efficiency, rails) * paths.bandwidth;
    best_.rate_limit = std::min(achieved, most / paths.channels);
    best_.limit_is_share = achieved <= most / paths.channels;
    // Few rails carry the pieces of all GPUs at each level of the trees.
    best_.latency += (few_rails ? levels_ : 1) * first_pieces(data, channels_.nvls_over_nodes, paths);
  }

  /// Considers sending `data` bytes over each channel of a path, at `share` of its links' bandwidth and with all channels
  /// together at no more than `most`. Returns whether that is the best so far.
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

const Tuning::Candidate Tuning::candidates[] = {
    {.name = "ring", .paths = Algorithm::ring, .all_reduce = true, .gathers = true, .consider = &Tuning::ring},
    {.name = "pat", .paths = Algorithm::ring, .all_reduce = false, .gathers = true, .consider = &Tuning::pat},
    {.name = "tree", .paths = Algorithm::tree, .all_reduce = true, .gathers = false, .consider = &Tuning::tree},
    {.name = "nvls", .paths = Algorithm::nvls, .all_reduce = true, .gathers = false, .consider = &Tuning::nvls},
    {.name = "nvls_tree", .paths = Algorithm::nvls_tree, .all_reduce = true, .gathers = false, .consider = &Tuning::nvls_tree},
};

CollectiveCost Tuning::best() {
  for (std::uint32_t index = 0; index < layout_.paths.size(); ++index)
    for (const Candidate& candidate : candidates)
      if (candidate.paths == layout_.paths[index].algorithm && (reduces_all_ ? candidate.all_reduce : candidate.gathers))
        (this->*candidate.consider)(index, constants_.way(candidate.name));
  return best_;
}

}  // namespace

const AlgorithmTraits& traits_of(Algorithm algorithm) {
  using enum AlgorithmTraits::Steps;
  static constexpr std::array<AlgorithmTraits, algorithm_count> table{{
      {.algorithm = Algorithm::ring, .steps = ring},
      {.algorithm = Algorithm::tree, .memory_of_sent = 4, .steps = tree},  // a channel counts one edge each way
      {.algorithm = Algorithm::nvls, .in_switches = true},
      {.algorithm = Algorithm::nvls_tree, .in_switches = true},
      {.algorithm = Algorithm::direct},
      {.algorithm = Algorithm::deepep},
      {.algorithm = Algorithm::hybridep},
  }};
  const AlgorithmTraits& traits = table.at(static_cast<std::size_t>(algorithm));
  if (traits.algorithm != algorithm) throw std::logic_error("the table of algorithms is out of order");
  return traits;
}

CollectiveCost nccl_choice(OpKind kind, Bytes bytes, std::size_t members, const Layout& layout, Architecture architecture) {
  return Tuning(kind, bytes, members, layout, architecture).best();
}

}  // namespace tandem::sim
