#include "studies/place/placed_job.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <utility>

#include "runtime/base/divide_up.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/sections.h"
#include "scenarios/reading/yaml_mapping.h"
#include "studies/place/free_nodes.h"

namespace tandem::studies {
namespace {

/// Counts the ranks of a mesh that states dp, up to one more than any cluster has.
std::int64_t ranks_of(const ParallelismSpec& p) {
  std::int64_t ranks = 1;
  for (const std::int64_t size : {p.tp, p.pp, p.cp, p.own_expert_axis ? p.ep : 1, p.dp})
    ranks = std::min(ranks * size, max_gpus + 1);
  return ranks;
}

YamlNode list_of(const std::vector<std::uint32_t>& gpus, const Place& place) {
  YamlNode list = make_node(YamlNode::Kind::sequence, place);
  for (const std::uint32_t gpu : gpus) list.items.push_back(make_scalar(std::to_string(gpu), place));
  return list;
}

}  // namespace

PlacedJob::PlacedJob(const std::string& file, const std::vector<std::string>& overrides, const std::string& nodes)
    : name_(std::filesystem::path(file).stem().string()), document_(load_document(file, overrides)) {
  give_name(document_, name_);
  std::vector<std::uint32_t> listed;
  if (YamlNode* parallelism = document_.find("parallelism");
      parallelism != nullptr && parallelism->find("placement") != nullptr) {
    listed = read_parallelism(*parallelism).placement.gpus;
    parallelism->erase("placement");
  }
  count({file, 0, 0});
  if (const YamlNode* cluster = document_.find("cluster")) hosts_ = read_cluster_hosts(*cluster);
  find_free(nodes, listed);
  packed_scenario_ = scenario(packed());
}

/// Counts ranks, blocks and nodes.
void PlacedJob::count(const Place& place) {
  const ParallelismSpec p = read_parallelism(section_of(document_, "parallelism", document_.place));
  const YamlNode* described = document_.find("cluster");
  const ClusterSpec cluster = described == nullptr ? ClusterSpec{} : read_cluster(*described);
  const std::int64_t ranks = p.dp == 0 ? cluster.gpus : ranks_of(p);
  if (described == nullptr || p.dp == 0 || cluster.gpus <= ranks) {
    const Scenario whole = read_document(document_, name_);  // or the sentence that says why there is none
    ranks_ = nodes_ = whole.parallelism.world_size();
    per_node_ = whole.cluster.gpus_per_node;
  } else {
    ranks_ = ranks;
    nodes_ = cluster.gpus;
    per_node_ = cluster.gpus_per_node;
  }
  nodes_ = divide_up(nodes_, per_node_);
  blocks_ = divide_up(ranks_, per_node_);
  if (blocks_ == 0) throw InputError(place, "has no ranks to place");
}

void PlacedJob::find_free(const std::string& nodes, const std::vector<std::uint32_t>& listed) {
  if (!nodes.empty()) {
    FreeNodes free = read_free_nodes(nodes, nodes_, hosts_);
    free_ = std::move(free.nodes);
    warnings_ = std::move(free.warnings);
  } else if (!listed.empty()) {
    for (const std::uint32_t gpu : listed) {
      const auto node = static_cast<std::uint32_t>(gpu / per_node_);
      if (node < nodes_ && std::ranges::find(free_, node) == free_.end()) free_.push_back(node);
    }
  } else {
    free_.resize(static_cast<std::size_t>(nodes_));
    std::iota(free_.begin(), free_.end(), 0U);
  }
  if (std::ssize(free_) >= blocks_) return;
  const Place place = nodes.empty() ? place_of(document_, "parallelism") : Place{"--nodes", 0, 0};
  throw InputError(place, std::to_string(ranks_) + " ranks need " + std::to_string(blocks_) + " nodes of " +
                              std::to_string(per_node_) + " GPUs, and " + std::to_string(free_.size()) +
                              (free_.size() == 1 ? " is" : " are") + " free; expected more nodes, or a smaller parallelism.dp");
}

std::vector<std::uint32_t> PlacedJob::gpus(const NodeOfBlock& nodes) const {
  std::vector<std::uint32_t> gpus;
  for (std::int64_t rank = 0; rank < ranks_; ++rank)
    gpus.push_back(static_cast<std::uint32_t>(nodes[static_cast<std::size_t>(rank / per_node_)] * per_node_ + rank % per_node_));
  return gpus;
}

std::vector<PlacedJob::HostSlots> PlacedJob::hosts(const NodeOfBlock& nodes) const {
  std::vector<HostSlots> hosts;
  if (std::ssize(hosts_.names) < nodes_ * hosts_.per_node) return hosts;
  const std::int64_t each = per_node_ / hosts_.per_node;
  for (std::int64_t rank = 0; rank < ranks_; rank += each) {
    const std::int64_t node = nodes[static_cast<std::size_t>(rank / per_node_)];
    const std::int64_t host = node * hosts_.per_node + rank % per_node_ / each;
    hosts.push_back({hosts_.names[static_cast<std::size_t>(host)], std::min(each, ranks_ - rank)});
  }
  return hosts;
}

YamlNode PlacedJob::placed(const NodeOfBlock& nodes) const {
  YamlNode document = document_;
  YamlNode& parallelism = section_of(document, "parallelism", document.place);
  put(parallelism, "placement", list_of(gpus(nodes), parallelism.place));
  return document;
}

Scenario PlacedJob::scenario(const NodeOfBlock& nodes) const { return read_document(placed(nodes), name_); }

std::string PlacedJob::text(const NodeOfBlock& nodes) const { return to_yaml(placed(nodes)); }

StepJob PlacedJob::step_job(const NodeOfBlock& nodes) const { return job_of(placed(nodes), name_); }

}  // namespace tandem::studies
