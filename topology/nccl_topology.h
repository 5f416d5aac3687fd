#pragma once

#include <stdexcept>
#include <string>

#include "topology/node.h"

namespace tandem::topology {

/// Says what is wrong in an XML file, and where; lines and columns count from 1.
struct XmlError : std::runtime_error {
  XmlError(const std::string& sentence, int at_line, int at_column)
      : std::runtime_error(sentence), line(at_line), column(at_column) {}
  int line = 0, column = 0;
};

/// Reads the node that NCCL saw from the XML that it writes where NCCL_TOPO_DUMP_FILE says (src/graph/xml.cc):
///
///   system > cpu > pci .. > pci > gpu > nvlink      link_speed="16.0 GT/s PCIe" link_width="16"; sm="80"; count="2"
///                               > nic > net         speed="200000", in Mb/s
///
/// A GPU with <c2c> (Grace) hangs on its CPU by count * bw MB/s instead of PCIe. A PCIe link carries link_speed * link_width / 8
/// GB/s, less its encoding: 8 of 10 bits are data up to 5 GT/s, 128 of 130 above. Where a virtual machine hides speed or width
/// (empty, 0), NCCL takes 8 GT/s and 16 lanes, and so does this. NVLinks are taken at their wire rate, not at NCCL's achievable
/// one. GPUs and NICs are numbered by `dev`. RCCL writes <xgmi> for links between GPUs, whose rate it does not say; GPUs that
/// have such links, or NVLinks, to each other must have equally many to every other (`Node::is_mesh`).
///
/// A file written by hand for NCCL_TOPO_FILE may name GPUs and NICs by their PCI class alone (0x0302, 0x02); these are numbered
/// by busid, and neither the rate of NVLinks nor that of NICs is known. Throws XmlError.
Node read_nccl_topology(const std::string& text);

}  // namespace tandem::topology
