#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_error.h"

namespace tandem::studies {

/// A topology of Slurm, of topology.conf or of one entry of topology.yaml: a tree of switches, or blocks of nodes.
struct SlurmTopology {
  struct Switch {
    std::string name;
    std::vector<std::string> children = {};  ///< switches below
    std::vector<std::string> nodes = {};     ///< hosts below
    Place place;
  };
  struct Block {
    std::string name;
    std::vector<std::string> nodes = {};
    Place place;
  };
  std::string name;  ///< of the entry; empty in a topology.conf
  std::vector<Switch> switches = {};
  std::vector<Block> blocks = {};
  std::vector<std::int64_t> block_sizes = {};  ///< in nodes, the base block first
  Place sizes_place = {};
  std::vector<std::string> unused = {};  ///< what is not read: other entries of the file, LinkSpeed
  bool is_default = true;                ///< whether the file says that this one counts
};

/// Reads a topology.conf (SwitchName, Switches, Nodes, LinkSpeed; BlockName, Nodes, BlockSizes) or a topology.yaml (tree, block),
/// of which the entry `wanted` counts, else the cluster's default, else the first that is a tree or blocks. Checks what Slurm
/// checks (src/plugins/topology/tree/switch_record.c, block/block_record.c): names once, children that are there, no circles,
/// sizes of blocks that are powers of two times the base. Throws InputError.
SlurmTopology read_slurm_topology(const std::string& text, const std::string& file, std::string_view wanted = "");

// The two forms, each without the checks.

bool is_slurm_conf(std::string_view text);
SlurmTopology parse_slurm_conf(const std::string& text, const std::string& file);
SlurmTopology parse_slurm_yaml(const std::string& text, const std::string& file, std::string_view wanted);

/// Returns the names of a list of nodes. Throws InputError where these are ports of InfiniBand and not nodes.
std::vector<std::string> slurm_nodes(std::string_view list, const Place& place);

}  // namespace tandem::studies
