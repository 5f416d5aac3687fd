#include <algorithm>
#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/token_routing.h"

namespace tandem::scenarios {
namespace {

std::string text(const char* name, std::int64_t value) { return std::string(name) + " " + std::to_string(value); }

void check_dense(const ParallelismSpec& p, const YamlNode& document) {
  if (p.ep > 1 || p.etp > 1)
    refuse(document, {"parallelism.ep", "parallelism.etp"},
           text("ep", p.ep) + ", " + text("etp", p.etp) + " for a model without experts; expected 1, or model.moe");
}

void check_dispatcher(const ParallelismSpec& p, const YamlNode& document) {
  if (p.dispatcher != Dispatcher::nccl && p.ep == 1)
    refuse(document, {"parallelism.dispatcher", "parallelism.ep"},
           "dispatcher deepep with ep 1, where no token leaves its rank; expected ep above 1, or dispatcher nccl");
}

void check_model(const MoeSpec& moe, const YamlNode& document) {
  if (moe.top_k > moe.experts)
    refuse(document, {"model.moe.top_k", "model.moe.experts"},
           text("top_k", moe.top_k) + " is more than the " + std::to_string(moe.experts) + " experts, expected at most that");
  const std::vector<double>& shares = moe.load.shares;
  if (!shares.empty() && static_cast<std::int64_t>(shares.size()) != moe.experts)
    refuse(document, {"model.moe.load", "model.moe.experts"},
           "the load lists " + std::to_string(shares.size()) + " experts, expected all " + std::to_string(moe.experts));
  if (std::ranges::count_if(shares, [](double share) { return share > 0; }) < moe.top_k && !shares.empty())
    refuse(document, {"model.moe.load", "model.moe.top_k"},
           "the load gives too few experts a share, expected at least " + text("top_k", moe.top_k) + " above 0");
  if (moe.capacity_factor > 0 && (!shares.empty() || moe.load.zipf > 0))
    refuse(document, {"model.moe.load", "model.moe.capacity_factor"},
           "a load beside a capacity factor: with a capacity, tokens go where their numbers send them; expected one of the two");
}

void check_mesh(const MoeSpec& moe, const ParallelismSpec& p, const YamlNode& document) {
  if (moe.experts % p.ep != 0)
    refuse(document, {"parallelism.ep", "model.moe.experts"},
           text("ep", p.ep) + " does not divide the " + std::to_string(moe.experts) +
               " experts; nearest that do: " + joined(nearest_divisors(moe.experts, p.ep)));
  if (moe.ffn % p.etp != 0)
    refuse(document, {"parallelism.etp", "model.moe.ffn"},
           text("etp", p.etp) + " does not divide the experts' ffn " + std::to_string(moe.ffn) +
               "; nearest that do: " + joined(nearest_divisors(moe.ffn, p.etp)));
  const std::int64_t ranks = p.tp * p.cp * p.dp;
  const std::int64_t shards = p.etp * (p.own_expert_axis ? 1 : p.ep);
  if (ranks % shards != 0)
    refuse(document, {"parallelism.ep", "parallelism.etp", "parallelism.dp", "cluster.gpus"},
           text("etp", p.etp) + (p.own_expert_axis ? "" : " * " + text("ep", p.ep)) + " does not divide " + text("tp", p.tp) +
               " * " + text("cp", p.cp) + " * " + text("dp", p.dp) + " = " + std::to_string(ranks) +
               "; nearest that do: " + joined(nearest_divisors(ranks, shards)));
  if (p.own_expert_axis && p.hsdp > 0)
    refuse(document, {"parallelism.expert_axis", "parallelism.hsdp"},
           "hsdp with expert_axis own is not lowered yet; supported: folded");
}

/// A load gives each token its nodes, and every node as many of its choices.
void check_load_of_nodes(const MoeSpec& moe, const NodeLimit& limit, const YamlNode& document) {
  if (moe.top_k % limit.visited != 0)
    refuse(document, {"model.moe.node_limit", "model.moe.top_k"},
           text("node_limit", moe.node_limit) + " does not divide " + text("top_k", moe.top_k) +
               ", so that nodes would get unequal parts of a token's choices; expected a divisor of top_k, or a capacity factor");
  const std::int64_t of_node = moe.top_k / limit.visited, node_size = moe.experts / limit.nodes;
  std::int64_t loaded = 0;
  for (auto node = moe.load.shares.begin(); node != moe.load.shares.end(); node += node_size) {
    const std::int64_t open = std::count_if(node, node + node_size, [](double share) { return share > 0; });
    loaded += open > 0 ? 1 : 0;
    if (open > 0 && open < of_node)
      refuse(document, {"model.moe.load", "model.moe.node_limit"},
             "the load gives " + std::to_string(open) + " of the experts " + std::to_string(node - moe.load.shares.begin()) +
                 " to " + std::to_string(node - moe.load.shares.begin() + node_size - 1) +
                 ", which lie in one node, a share, but a token takes " + std::to_string(of_node) +
                 " there; expected none or at least that");
  }
  if (!moe.load.shares.empty() && loaded < limit.visited)
    refuse(document, {"model.moe.load", "model.moe.node_limit"},
           "the load gives shares in " + std::to_string(loaded) + " of " + std::to_string(limit.nodes) +
               " nodes, expected at least " + text("node_limit", moe.node_limit));
}

void check_node_limit(const Scenario& scenario, const YamlNode& document) {
  const MoeSpec& moe = scenario.model.moe;
  const NodeLimit limit = node_limit_of(scenario);
  if (limit.visited == 0) return;
  if (!nodes_hold_equal_runs(scenario))
    refuse(document, {"model.moe.node_limit", "parallelism.ep", "cluster.gpus_per_node"},
           text("node_limit", moe.node_limit) + " with " + text("ep", scenario.parallelism.ep) + " on nodes of " +
               std::to_string(scenario.cluster.gpus_per_node) +
               " GPUs, which do not all hold as many of a layer's experts; expected ep a multiple of the ranks in a node");
  if (limit.visited * (moe.experts / limit.nodes) < moe.top_k)
    refuse(document, {"model.moe.node_limit", "model.moe.top_k"},
           text("top_k", moe.top_k) + " experts do not fit into " + text("node_limit", moe.node_limit) + ": each of the " +
               std::to_string(limit.nodes) + " nodes holds " + std::to_string(moe.experts / limit.nodes) + " experts");
  if (moe.capacity_factor == 0) check_load_of_nodes(moe, limit, document);
}

}  // namespace

void validate_experts(const Scenario& scenario, const YamlNode& document) {
  const MoeSpec& moe = scenario.model.moe;
  check_dispatcher(scenario.parallelism, document);
  if (moe.experts == 0) return check_dense(scenario.parallelism, document);
  check_model(moe, document);
  if (scenario.parallelism.own_expert_axis && scenario.training.hierarchical_all_reduce)
    refuse(document, {"parallelism.expert_axis", "training.hierarchical_all_reduce"},
           "hierarchical_all_reduce with expert_axis own is not lowered yet; supported: folded");
  check_mesh(moe, scenario.parallelism, document);
  check_node_limit(scenario, document);
}

}  // namespace tandem::scenarios
