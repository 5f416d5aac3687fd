#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::studies {

/// An InfiniBand fabric as ibnetdiscover prints it (rdma-core, infiniband-diags/ibnetdiscover.c; ibsim's input has the same
/// shape).
struct IbFabric {
  enum class Kind : std::uint8_t {
    adapter,
    node_switch,
    router
  };
  /// A cable, seen from one end.
  struct Port {
    int number = 0;
    std::string to;     ///< id of the other node
    int to_number = 0;  ///< port there
    double gbps = 0;    ///< per direction, less the encoding; 0: not printed
    Place place;
  };
  struct Node {
    Kind kind = Kind::adapter;
    std::string id;           ///< "S-2c5eab0300b87b40"
    std::string description;  ///< "node041 mlx5_5"; empty where none is printed
    std::map<int, Port> ports = {};
    Place place;
  };
  std::vector<Node> nodes;
};

/// Reads the text. Throws InputError for a line that is none of ibnetdiscover's, for a cable to a node that is not listed, for
/// ends that do not agree.
IbFabric parse_ibnetdiscover(const std::string& text, const std::string& file);

/// Returns Gbit/s of a link such as "4xNDR", per direction and less its encoding: 8 of 10 bits are data up to QDR, 64 of 66
/// above; 0 for a width or a rate that is not known. Rates of a lane: InfiniBand Trade Association, roadmap; 2.5, 5, 10 for SDR
/// to QDR, 10.3125, 14.0625, 25.78125 for FDR10, FDR and EDR; HDR, NDR and XDR carry 50, 100 and 200 of data.
double gbps_of_link(std::string_view link);

}  // namespace tandem::studies
