#include <algorithm>
#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"
#include "scenarios/mesh/expert_mesh.h"
#include "scenarios/mesh/token_routing.h"
#include "scenarios/schedules/schedule_table.h"

namespace tandem::scenarios {
namespace {

bool is_dense(const Scenario& s) { return s.model.moe.experts == 0; }

constexpr Rule deepep_has_ranks{
    .holds = [](const Scenario& s) { return s.parallelism.dispatcher == Dispatcher::nccl || s.parallelism.ep > 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.dispatcher", "parallelism.ep"},
              "dispatcher " + std::string(name_in(dispatcher_names, s.parallelism.dispatcher)) + " with " + named(Axis::ep, 1) +
                  ", where no token leaves its rank; expected ep above 1, or dispatcher nccl"};
    }};

constexpr Rule dense_models_have_no_expert_ranks{
    .sizes = Sizes::experts,
    .holds = [](const Scenario& s) { return !is_dense(s) || (s.parallelism.ep == 1 && s.parallelism.etp == 1); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.ep", "parallelism.etp"},
              named(Axis::ep, s.parallelism.ep) + ", " + named("etp", s.parallelism.etp) +
                  " for a model without experts; expected 1, or model.moe"};
    }};

constexpr Rule biased_experts_are_whole{
    .sizes = Sizes::experts,
    .holds = [](const Scenario& s) { return !s.model.moe.linear_bias || s.parallelism.etp == 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"model.moe.linear_bias", "parallelism.etp"},
              "model.moe.linear_bias with " + named("etp", s.parallelism.etp) +
                  ", whose ranks add up what each makes of a part of an expert, is not lowered; expected etp 1"};
    }};

constexpr Rule biased_experts_are_weighted_after{
    .holds = [](const Scenario& s) { return !s.model.moe.linear_bias || !s.training.gates_at_experts; },
    .objection = [](const Scenario&) -> Objection {
      return {{"model.moe.linear_bias", "training.gates_at_experts"},
              "model.moe.linear_bias with training.gates_at_experts, which would have to weight the biases, too, is not lowered; "
              "expected gates_at_experts false"};
    }};

constexpr Rule exchanges_hide_in_pairs{
    .sizes = Sizes::schedule,
    .holds =
        [](const Scenario& s) { return !s.training.overlap_ep || traits_of(s.training.schedule).can_pair(s.parallelism.pp); },
    .objection = [](const Scenario& s) -> Objection {
      std::string schedules;
      for (const ScheduleTraits& traits : schedule_table())
        if (traits.can_pair(s.parallelism.pp)) schedules += (schedules.empty() ? "" : " or ") + std::string(traits.name);
      return {{"training.overlap.ep", "training.schedule", "parallelism.pp"},
              "overlap.ep with schedule " + std::string(name_of(s.training.schedule)) + " and " +
                  named(Axis::pp, s.parallelism.pp) +
                  ", where no forward runs beside a backward to hide the experts' exchanges; expected schedule " + schedules +
                  ", or overlap.ep false"};
    }};

constexpr Rule exchanges_hide_without_gathered_weights{
    .holds = [](const Scenario& s) { return !s.training.overlap_ep || s.parallelism.zero < 3; },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"training.overlap.ep", "parallelism.zero"},
          "overlap.ep with zero 3, whose weights would have to be there for two passes at once, is not lowered; expected zero "
          "2 or less, or overlap.ep false"};
    }};

/// The model by itself.
std::optional<Objection> find_wrong_choice(const Scenario& s) {
  const MoeSpec& moe = s.model.moe;
  if (is_dense(s)) return {};
  if (moe.shared_gate && moe.shared_experts == 0)
    return Objection{{"model.moe.shared_gate", "model.moe.shared_experts"},
                     "shared_gate without shared_experts, expected these, or shared_gate false"};
  if (moe.best_of_group > 0 && moe.node_limit == 0)
    return Objection{{"model.moe.best_of_group", "model.moe.node_limit"},
                     "best_of_group without a node_limit, which alone chooses groups; expected that, too"};
  if (moe.top_k > moe.experts)
    return Objection{
        {"model.moe.top_k", "model.moe.experts"},
        named("top_k", moe.top_k) + " is more than the " + std::to_string(moe.experts) + " experts, expected at most that"};
  const std::vector<double>& shares = moe.load.shares;
  if (!shares.empty() && static_cast<std::int64_t>(shares.size()) != moe.experts)
    return Objection{{"model.moe.load", "model.moe.experts"},
                     "the load lists " + std::to_string(shares.size()) + " experts, expected all " + std::to_string(moe.experts)};
  if (std::ranges::count_if(shares, [](double share) { return share > 0; }) < moe.top_k && !shares.empty())
    return Objection{{"model.moe.load", "model.moe.top_k"},
                     "the load gives too few experts a share, expected at least " + named("top_k", moe.top_k) + " above 0"};
  if (moe.routing == Routing::expert_choice && !moe.load.is_uniform())
    return Objection{{"model.moe.routing", "model.moe.load"},
                     "a load with routing expert-choice, under which every expert takes as many tokens as the others; expected "
                     "no load, or routing top-k"};
  if (moe.routing == Routing::expert_choice && moe.node_limit > 0)
    return Objection{{"model.moe.routing", "model.moe.node_limit"},
                     named("node_limit", moe.node_limit) +
                         " with routing expert-choice, under which no token chooses its nodes; expected no node_limit, or "
                         "routing top-k"};
  return {};
}

/// What the router makes of its logits.
std::optional<Objection> find_wrong_router(const Scenario& s) {
  const MoeSpec& moe = s.model.moe;
  if (is_dense(s)) return {};
  const bool is_softmax = moe.score_function == ScoreFunction::softmax;
  if (moe.pre_softmax && !is_softmax)
    return Objection{{"model.moe.pre_softmax", "model.moe.score_function"},
                     "pre_softmax with score_function " + std::string(name_in(score_function_names, moe.score_function)) +
                         ", which has no softmax; expected pre_softmax false, or score_function softmax"};
  if (moe.expert_bias && is_softmax)
    return Objection{{"model.moe.expert_bias", "model.moe.score_function"},
                     "expert_bias with score_function softmax, where Megatron-Core takes no bias either; expected score_function "
                     "sigmoid, or expert_bias false"};
  const bool is_plain = is_softmax && !moe.pre_softmax && moe.scaling_factor == 1;
  if (moe.routing == Routing::expert_choice && !is_plain)
    return Objection{{"model.moe.routing", "model.moe.score_function", "model.moe.pre_softmax", "model.moe.scaling_factor"},
                     "routing expert-choice, whose gates are the softmax over all experts; expected score_function softmax, "
                     "pre_softmax false and scaling_factor 1, or routing top-k"};
  if (moe.expert_bias && s.training.local_steps())
    return Objection{{"model.moe.expert_bias", "training.sync_every"},
                     "expert_bias with sync_every " + std::to_string(s.training.sync_every) +
                         ", where no replica knows the load of the others; expected sync_every 1, or expert_bias false"};
  if (moe.groups > 0 && moe.experts % moe.groups != 0)
    return Objection{{"model.moe.groups", "model.moe.experts"},
                     named("groups", moe.groups) + " does not divide the " + std::to_string(moe.experts) +
                         " experts; nearest that do: " + joined(nearest_divisors(moe.experts, moe.groups))};
  return {};
}

constexpr Rule hashed_choices_are_of_tokens{
    .holds =
        [](const Scenario& s) {
          const MoeSpec& moe = s.model.moe;
          return moe.hash_layers == 0 || is_dense(s) || (moe.routing == Routing::top_k && moe.node_limit == 0);
        },
    .objection = [](const Scenario& s) -> Objection {
      const std::string field = s.model.moe.node_limit > 0 ? "node_limit" : "routing expert-choice";
      return {{"model.moe.hash_layers", "model.moe.node_limit", "model.moe.routing"},
              "hash_layers with " + field +
                  ", whose experts are not those that a token's number gives; expected hash_layers 0, or " + field + " left out"};
    }};

// Experts over ranks.

constexpr Rule ep_divides_experts{
    .sizes = Sizes::experts,
    .holds = [](const Scenario& s) { return s.model.moe.experts % s.parallelism.ep == 0 || is_dense(s); },
    .objection = [](const Scenario& s) -> Objection {
      const std::int64_t experts = s.model.moe.experts, ep = s.parallelism.ep;
      return {{"parallelism.ep", "model.moe.experts"},
              named(Axis::ep, ep) + " does not divide the " + std::to_string(experts) +
                  " experts; nearest that do: " + joined(nearest_divisors(experts, ep))};
    }};

constexpr Rule etp_divides_ffn{.sizes = Sizes::experts,
                               .holds = [](const Scenario& s) { return s.model.moe.ffn % s.parallelism.etp == 0 || is_dense(s); },
                               .objection = [](const Scenario& s) -> Objection {
                                 const std::int64_t ffn = s.model.moe.ffn, etp = s.parallelism.etp;
                                 return {{"parallelism.etp", "model.moe.ffn"},
                                         named("etp", etp) + " does not divide the experts' ffn " + std::to_string(ffn) +
                                             "; nearest that do: " + joined(nearest_divisors(ffn, etp))};
                               }};

std::int64_t ranks_of_stage(const ParallelismSpec& p) { return p.tp * p.cp * p.dp; }

constexpr Rule expert_shards_divide_ranks{
    .sizes = Sizes::experts,
    .holds = [](const Scenario& s) { return is_dense(s) || ranks_of_stage(s.parallelism) % s.parallelism.expert_shards() == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      const std::int64_t ranks = ranks_of_stage(p);
      return {{"parallelism.ep", "parallelism.etp", "parallelism.dp", "cluster.gpus"},
              named("etp", p.etp) + (p.own_expert_axis ? "" : " * " + named(Axis::ep, p.ep)) + " does not divide " +
                  named(Axis::tp, p.tp) + " * " + named(Axis::cp, p.cp) + " * " + named(Axis::dp, p.dp) + " = " +
                  std::to_string(ranks) + "; nearest that do: " + joined(nearest_divisors(ranks, p.expert_shards()))};
    }};

// A token's experts in few nodes.

/// A load gives each token its nodes, and every node as many of its choices.
std::optional<Objection> find_wrong_load_of_nodes(const MoeSpec& moe, const NodeLimit& limit) {
  if (moe.top_k % limit.visited != 0)
    return Objection{{"model.moe.node_limit", "model.moe.top_k"},
                     named("node_limit", moe.node_limit) + " does not divide " + named("top_k", moe.top_k) +
                         ", so that nodes would get unequal parts of a token's choices; expected a divisor of top_k, or a "
                         "capacity factor without a load"};
  const std::vector<double>& shares = moe.load.shares;
  const std::int64_t of_node = moe.top_k / limit.visited, node_size = moe.experts / limit.nodes;
  std::int64_t loaded = 0;
  for (auto node = shares.begin(); node != shares.end(); node += node_size) {
    const std::int64_t open = std::count_if(node, node + node_size, [](double share) { return share > 0; });
    loaded += open > 0 ? 1 : 0;
    const std::int64_t first = node - shares.begin();
    if (open > 0 && open < of_node)
      return Objection{{"model.moe.load", "model.moe.node_limit"},
                       "the load gives " + std::to_string(open) + " of the experts " + std::to_string(first) + " to " +
                           std::to_string(first + node_size - 1) + ", which lie in one " + (moe.groups > 0 ? "group" : "node") +
                           ", a share, but a token takes " + std::to_string(of_node) + " there; expected none or at least that"};
  }
  if (!shares.empty() && loaded < limit.visited)
    return Objection{{"model.moe.load", "model.moe.node_limit"},
                     "the load gives shares in " + std::to_string(loaded) + " of " + std::to_string(limit.nodes) +
                         (moe.groups > 0 ? " groups" : " nodes") + ", expected at least " + named("node_limit", moe.node_limit)};
  return {};
}

std::optional<Objection> find_wrong_node_limit(const Scenario& scenario) {
  const MoeSpec& moe = scenario.model.moe;
  if (is_dense(scenario)) return {};
  const NodeLimit limit = node_limit_of(scenario);
  if (limit.visited == 0) return {};
  if (moe.groups == 0 && !nodes_hold_equal_runs(scenario))
    return Objection{{"model.moe.node_limit", "parallelism.ep", "cluster.gpus_per_node"},
                     named("node_limit", moe.node_limit) + " with " + named(Axis::ep, scenario.parallelism.ep) + " on nodes of " +
                         std::to_string(scenario.cluster.gpus_per_node) +
                         " GPUs, which do not all hold as many of a layer's experts; expected ep a multiple of the ranks in a "
                         "node"};
  if (limit.visited * (moe.experts / limit.nodes) < moe.top_k)
    return Objection{{"model.moe.node_limit", "model.moe.top_k"},
                     named("top_k", moe.top_k) + " experts do not fit into " + named("node_limit", moe.node_limit) +
                         ": each of the " + std::to_string(limit.nodes) + (moe.groups > 0 ? " groups" : " nodes") + " holds " +
                         std::to_string(moe.experts / limit.nodes) + " experts"};
  if (!moe.forces_choices()) return {};
  return find_wrong_load_of_nodes(moe, limit);
}

constexpr Rule rules_of_experts[] = {deepep_has_ranks,
                                     dense_models_have_no_expert_ranks,
                                     rule_of<find_wrong_choice>,
                                     rule_of<find_wrong_router>,
                                     hashed_choices_are_of_tokens,
                                     biased_experts_are_whole,
                                     biased_experts_are_weighted_after,
                                     ep_divides_experts,
                                     etp_divides_ffn,
                                     expert_shards_divide_ranks,
                                     exchanges_hide_in_pairs,
                                     exchanges_hide_without_gathered_weights,
                                     rule_of<find_wrong_node_limit>};

}  // namespace

std::span<const Rule> expert_rules() { return rules_of_experts; }

}  // namespace tandem::scenarios
