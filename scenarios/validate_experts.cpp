#include <algorithm>
#include <string>

#include "scenarios/expert_mesh.h"
#include "scenarios/nearest.h"
#include "scenarios/routing.h"
#include "scenarios/validate.h"

namespace tandem {
namespace {

std::string text(const char* name, std::int64_t value) { return std::string(name) + " " + std::to_string(value); }

void check_dense(const ParallelismSpec& p, const YamlNode& document) {
  if (p.ep > 1 || p.etp > 1)
    refuse(document, {"parallelism.ep", "parallelism.etp"},
           text("ep", p.ep) + ", " + text("etp", p.etp) + " for a model without experts; expected 1, or model.moe");
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
  if (p.tp > 1 && !p.sp)
    refuse(
        document, {"parallelism.sp", "parallelism.tp"},
        "experts with " + text("tp", p.tp) + " need sp, so that every rank routes tokens of its own; expected sp true or tp 1");
}

void check_node_limit(const Scenario& scenario, const YamlNode& document) {
  const MoeSpec& moe = scenario.model.moe;
  if (moe.node_limit == 0) return;
  const std::int64_t nodes = expert_nodes(scenario);
  const std::int64_t limit = std::min(moe.node_limit, nodes);
  const std::string lie = "; the experts lie in " + std::to_string(nodes) + " nodes";
  if (moe.experts % nodes != 0 || limit * (moe.experts / nodes) < moe.top_k)
    refuse(document, {"model.moe.node_limit", "model.moe.top_k"},
           text("top_k", moe.top_k) + " experts do not fit into " + text("node_limit", moe.node_limit) + lie);
  if (moe.capacity_factor > 0 || limit == nodes) return;
  if (!moe.load.shares.empty() || moe.load.zipf > 0)
    refuse(document, {"model.moe.node_limit", "model.moe.load"},
           "node_limit with an uneven load is not lowered yet; supported: uniform, or a capacity factor");
  const std::int64_t of_node = moe.top_k / limit;
  if (tokens_of_group(scenario) * moe.top_k % moe.experts != 0)
    refuse(document, {"model.moe.node_limit", "training.sequence"},
           std::to_string(tokens_of_group(scenario)) + " tokens of a rank do not spread evenly over " +
               std::to_string(moe.experts) + " experts, as a node_limit without capacity factor needs");
  if (moe.top_k % limit != 0 || nodes % limit != 0 || moe.experts / nodes % of_node != 0)
    refuse(document, {"model.moe.node_limit", "model.moe.top_k"},
           text("node_limit", moe.node_limit) + " cannot spread " + text("top_k", moe.top_k) +
               " choices evenly, expected a divisor of top_k and of the nodes" + lie);
}

}  // namespace

void validate_experts(const Scenario& scenario, const YamlNode& document) {
  const MoeSpec& moe = scenario.model.moe;
  if (moe.experts == 0) return check_dense(scenario.parallelism, document);
  check_model(moe, document);
  if (scenario.parallelism.own_expert_axis && scenario.training.hierarchical_all_reduce)
    refuse(document, {"parallelism.expert_axis", "training.hierarchical_all_reduce"},
           "hierarchical_all_reduce with expert_axis own is not lowered yet; supported: folded");
  check_mesh(moe, scenario.parallelism, document);
  check_node_limit(scenario, document);
}

}  // namespace tandem
