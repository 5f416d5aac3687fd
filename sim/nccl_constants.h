#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/dag/device.h"
#include "runtime/dag/network.h"

namespace tandem::sim {

/// NCCL's ways of moving data. LL and LL128 send flags with the data instead of waiting for it to be visible: less latency, less
/// bandwidth.
enum class Protocol : std::uint8_t {
  ll,
  ll128,
  simple
};
inline constexpr std::size_t protocol_count = 3;
constexpr const char* name_of(Protocol protocol) {
  constexpr const char* names[protocol_count] = {"LL", "LL128", "Simple"};
  return names[static_cast<int>(protocol)];
}

/// NCCL's constants. Data: `sim/profiles/nccl.csv`, where each has its source.
struct NcclConstants {
  template <typename T>
  using ByProtocol = std::array<T, protocol_count>;
  using ByNodes = std::array<BytesPerSecond, 3>;  ///< one node, two, more

  struct Way {
    ByProtocol<Seconds> base{};
    ByProtocol<Seconds> nvlink{}, net{};       ///< one hop
    ByProtocol<double> one_node{}, several{};  ///< share of the bus bandwidth; 0 where NCCL never does it
    std::array<ByProtocol<ByNodes>, architecture_count> channel_limits{};  ///< of a channel; 0 where NCCL has none
  };
  /// The times of rings in one node, where they were measured: see `nccl_choice`.
  struct Measured {
    ByProtocol<Seconds> base{}, hop{}, least_hop{};  ///< `base` 0: not measured
    ByProtocol<double> share{};                      ///< of the bandwidth; 0: as NCCL predicts
    ByProtocol<double> gather_share{};               ///< the same of an all-gather, where it differs; 0: it does not
    ByProtocol<BytesPerSecond> channel_rate{};       ///< of one of NCCL's channels, on the bus; 0: not measured
    ByProtocol<double> fill{};                       ///< of the time of one message
  };
  struct Limits {
    ByNodes ll{};  ///< bus bandwidth, all channels
    double nvls_efficiency = 0, achieved_nvls_efficiency = 0;
    double nvls_tree_rails = 0;  ///< of a node, as many as NVLSTree fills; 0: all
    double plateau = 1;          ///< by which NCCL stretches the latency of large rings over nodes, under Simple
  };
  /// One multiprocessor each; see nccl_channels.h.
  struct Channels {
    std::int32_t in_node = 0, per_rail = 0, most_over_nodes = 0;  ///< of rings and trees
    std::int32_t nvls = 0, nvls_over_nodes = 0;
    std::int32_t direct_in_node = 0, direct_over_nodes = 0;  ///< of a pair of GPUs
  };
  /// What NCCL reckons of a tree's bandwidth for an all-reduce of so many bytes: trees do not stick to its model for middling
  /// sizes.
  double tree_correction(Protocol protocol, Bytes bytes) const;
  std::array<std::vector<double>, protocol_count> tree_corrections{};  ///< from 64 bytes on, in steps of a power of two
  Seconds net_overhead = 0;                      ///< of each step of a ring over nodes; three times under Simple
  std::map<std::string, Way, std::less<>> ways;  ///< by algorithm
  const Way& way(std::string_view algorithm) const;
  Seconds pat_per_rank = 0;       ///< what PAT takes beside its hops
  double pat_hops_under_way = 1;  ///< of PAT, at once
  std::array<Limits, architecture_count> limits{};
  std::array<Measured, architecture_count> ring_in_node{};
  Bytes longest_fill = 0;
  std::array<Channels, architecture_count> channels{};
  ByProtocol<Bytes> bytes_per_channel{};  ///< that NCCL gives each at least
  ByProtocol<double> data_per_wire_byte{};
  /// Constants of the kernels of DeepEP and HybridEP, which are not NCCL's.
  struct TokenKernels {
    double in_node = 0;                     ///< share of the NVLinks that they reach inside a node
    double forwarding = 0, over_nodes = 0;  ///< of the NVLinks and the NICs, over several
    std::int32_t multiprocessors = 0;
  };
  TokenKernels deepep = {}, hybridep = {};
  const TokenKernels& token_kernels(Algorithm algorithm) const { return algorithm == Algorithm::hybridep ? hybridep : deepep; }
  Bytes nvls_piece = 0;  ///< of a GPU's part of the vector: what a channel of NVLS takes through the switches at once
};

const NcclConstants& nccl_constants();

}  // namespace tandem::sim
