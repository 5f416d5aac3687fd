#pragma once

#include <array>

#include "runtime/device.h"
#include "runtime/units.h"

namespace tandem {

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
  };
  struct Limits {
    ByNodes ll{};                                       ///< bus bandwidth, all channels
    ByNodes ring_ll128{}, tree_ll128{}, tree_simple{};  ///< per channel
    double nvls_efficiency = 0, achieved_nvls_efficiency = 0;
  };
  Way ring, tree, nvls, pat;
  std::array<Limits, architecture_count> limits{};
  ByProtocol<double> data_per_wire_byte{};
  double channels_in_node = 0, channels_per_rail = 0;
  Bytes nvls_piece = 0;  ///< of a GPU's part of the vector: what all channels of NVLS take through the switches at once
};

const NcclConstants& nccl_constants();

}  // namespace tandem
