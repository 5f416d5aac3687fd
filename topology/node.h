#pragma once

#include <boost/graph/adjacency_list.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "topology/cluster_spec.h"

namespace tandem::topology {

/// The inside of a node, as a graph.
struct Node {
  struct Part {
    enum class Kind : std::uint8_t {
      cpu,
      pcie,  ///< a PCIe switch, or the card that NICs are on
      gpu,
      nic,
      nvswitch
    };
    Kind kind = Kind::cpu;
    std::string name;
  };
  struct Wire {
    enum class Kind : std::uint8_t {
      pcie,
      socket,  ///< between CPUs, or NVLink-C2C from a GPU to its CPU
      nvlink,
      line  ///< the NIC's own: what its port carries; infinite where it is not known
    };
    Kind kind = Kind::pcie;
    std::string name;
    double GBps = 0;  ///< per direction
  };
  using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Part, Wire>;

  Graph graph;
  std::vector<std::uint32_t> gpus, nics;  ///< vertices, by number
  bool is_mesh = false;                   ///< every two GPUs have links of their own, without a switch
};

/// What a cluster's description says of its nodes.
struct NodeNetwork {
  std::int64_t gpus = 0;
  std::int64_t nics = 0;   ///< that a GPU uses
  double nvlink_GBps = 0;  ///< 0 without NVLinks, or where their rate is not known
  bool is_mesh = false;    ///< as of `Node`
  double nic_gbps = 0;     ///< 0: not known
  PcieSpec pcie = {};      ///< NICs numbered among those that a GPU uses
};

/// Finds which NIC each GPU uses, and what lies on the way there.
///
/// A GPU's NICs are the nearest ones, as NCCL tells them apart (PATH_PIX, PATH_PXB, PATH_PHB, PATH_SYS of src/graph/topo.h):
/// behind the same PCIe switch; behind several; through a CPU; through two; then those with the widest way. GPUs with equal NICs
/// share them out as NCCL does: the i-th takes the one whose number is i with its bits mirrored, so that the first few lie far
/// apart; with more NICs than GPUs each takes an equal run. NICs that are nearest to no GPU (for storage, say) are left out.
/// Every PCIe link and socket interconnect on such a way is a port, on which the GPUs share whose ways it is on. Of a GPU with
/// several NICs only the links to all of them count, because a port is shared by GPUs and not by NICs.
///
/// Throws TopologyError where NICs differ in speed, or cannot be shared out evenly.
NodeNetwork network_of(const Node& node);

}  // namespace tandem::topology
