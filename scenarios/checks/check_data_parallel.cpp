#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/nearest.h"
#include "scenarios/checks/rules.h"
#include "scenarios/mesh/data_blocks.h"
#include "scenarios/mesh/rank_placement.h"

namespace tandem::scenarios {
namespace {

// HSDP.

constexpr Rule hsdp_has_slices{
    .holds = [](const Scenario& s) { return s.parallelism.hsdp == 0 || s.parallelism.zero > 0; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"parallelism.hsdp", "parallelism.zero"},
              "hsdp " + std::to_string(s.parallelism.hsdp) + " with zero 0, which has no slices, expected zero 1, 2 or 3"};
    }};

constexpr Rule hsdp_divides_group{.holds =
                                      [](const Scenario& s) {
                                        const ParallelismSpec& p = s.parallelism;
                                        return p.hsdp == 0 || p.data_replicas() * p.cp % p.hsdp == 0;
                                      },
                                  .objection = [](const Scenario& s) -> Objection {
                                    const ParallelismSpec& p = s.parallelism;
                                    const std::int64_t members = p.data_replicas() * p.cp;
                                    return {{"parallelism.hsdp", "parallelism.dp", "cluster.gpus"},
                                            "hsdp " + std::to_string(p.hsdp) + " does not divide the data-parallel group of " +
                                                std::to_string(members) +
                                                "; nearest that do: " + joined(nearest_divisors(members, p.hsdp))};
                                  }};

// ZeRO-3.

constexpr Rule kept_weights_are_not_dropped{
    .holds = [](const Scenario& s) { return !s.parallelism.reshard_after_forward || s.parallelism.gather_per_micro_batch; },
    .objection = [](const Scenario&) -> Objection {
      return {{"parallelism.reshard_after_forward", "parallelism.gather_per_micro_batch"},
              "reshard_after_forward true with gather_per_micro_batch false, which keeps weights for the whole step; expected at "
              "most one of the two"};
    }};

// All-reduce in two levels.

std::optional<Objection> find_wrong_hierarchy(const Scenario& scenario) {
  if (!scenario.training.hierarchical_all_reduce) return {};
  if (scenario.parallelism.hsdp > 0)
    return Objection{{"training.hierarchical_all_reduce", "parallelism.hsdp"},
                     "hierarchical_all_reduce with hsdp, which works in two levels already, expected at most one of the two"};
  if (!scenario.parallelism.placement.is_packed() && !keeps_nodes_together(scenario))
    return Objection{
        {"training.hierarchical_all_reduce", "parallelism.placement"},
        "hierarchical_all_reduce takes neighbouring ranks for a node's, expected parallelism.placement packed, or a list of "
        "whole nodes"};
  const auto [least, most] = data_members_by_node(scenario, Mesh(scenario.parallelism));
  if (least != most)
    return Objection{{"training.hierarchical_all_reduce", "parallelism.dp", "parallelism.order", "cluster.gpus_per_node"},
                     "hierarchical_all_reduce with " + std::to_string(most) +
                         " members of a data-parallel group on one node and " + std::to_string(least) +
                         " on another, expected the same number on each"};
  return {};
}

constexpr Rule compressed_gradients_have_bytes{
    .holds = [](const Scenario& s) { return size_of(s.training.grad_dtype) % s.training.grad_compression == 0; },
    .objection = [](const Scenario& s) -> Objection {
      const DType type = s.training.grad_dtype;
      return {{"training.grad_compression", "training.grad_dtype"},
              "grad_compression " + std::to_string(s.training.grad_compression) + " of " + std::string(name_of(type)) +
                  " gradients leaves less than a byte of each, expected at most " + std::to_string(size_of(type))};
    }};

// Compressors that keep residuals.

std::string compressor_text(const Scenario& s) {
  return "compressor.method " + std::string(name_in(compression_method_names, s.training.compressor.method));
}

constexpr Rule compressors_have_whole_gradients{
    .holds = [](const Scenario& s) { return !s.training.compressor.keeps_residuals() || s.parallelism.zero <= 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.compressor.method", "parallelism.zero"},
              compressor_text(s) + " with zero " + std::to_string(s.parallelism.zero) +
                  ", which keeps slices of gradients, while every rank gets the whole of a compressed one; expected zero 0 or 1, "
                  "or compressor.method cast"};
    }};

constexpr Rule compressors_work_in_one_level{
    .holds =
        [](const Scenario& s) {
          return !s.training.compressor.keeps_residuals() || (s.parallelism.hsdp == 0 && !s.training.hierarchical_all_reduce);
        },
    .objection = [](const Scenario& s) -> Objection {
      const bool hsdp = s.parallelism.hsdp > 0;
      return {{"training.compressor.method", hsdp ? "parallelism.hsdp" : "training.hierarchical_all_reduce"},
              compressor_text(s) + " with " + (hsdp ? "hsdp" : "hierarchical_all_reduce") +
                  ", which adds gradients up in two levels, while compressed ones are exchanged in one; expected at most one of "
                  "the two"};
    }};

constexpr Rule compressors_send_every_step{
    .holds = [](const Scenario& s) { return !s.training.compressor.keeps_residuals() || !s.training.local_steps(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.compressor.method", "training.sync_every"},
              compressor_text(s) + " with sync_every " + std::to_string(s.training.sync_every) +
                  ", under which replicas exchange weights and no gradients; expected at most one of the two"};
    }};

constexpr Rule compressors_send_in_all_steps_alike{
    .holds = [](const Scenario& s) { return !s.training.compressor.keeps_residuals() || s.training.sync.empty(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.compressor.method", "training.sync"},
              compressor_text(s) +
                  " with training.sync, whose replicas exchange gradients and weights as they are; expected at most "
                  "one of the two"};
    }};

constexpr Rule compressors_are_not_cast{
    .holds = [](const Scenario& s) { return !s.training.compressor.keeps_residuals() || s.training.grad_compression == 1; },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.compressor.method", "training.grad_compression"},
              compressor_text(s) + " with grad_compression " + std::to_string(s.training.grad_compression) +
                  ", the ratio of method cast; expected grad_compression 1, or compressor.method cast"};
    }};

bool multiplies_gradients(const Device& gpu, const Scenario& s) {
  return gpu.peak[static_cast<std::size_t>(s.training.grad_dtype)] > 0;
}

constexpr Rule powersgd_is_multiplied{
    .holds =
        [](const Scenario& s) {
          if (s.training.compressor.method != CompressionMethod::powersgd) return true;
          return multiplies_gradients(s.cluster.gpu, s) &&
                 std::ranges::all_of(s.cluster.other_gpus, [&](const OtherGpus& o) { return multiplies_gradients(o.gpu, s); });
        },
    .objection = [](const Scenario& s) -> Objection {
      const std::string type(name_of(s.training.grad_dtype));
      return {{"training.compressor.method", "training.grad_dtype"},
              compressor_text(s) + " multiplies gradients in their type, " + type + ", of which a GPU has no peak; expected " +
                  "cluster.gpu.peak_TFLOPS." + type + ", or another grad_dtype"};
    }};

// Replicas that take steps of their own: local SGD, and what is played against stragglers.

bool any_policy(const Scenario& s) {
  return std::ranges::any_of(s.training.sync, [](const SyncPolicy& policy) { return policy.kind != SyncKind::synchronous; });
}

bool step_alone(const Scenario& s) { return s.training.local_steps() || any_policy(s); }

/// What a sentence calls that.
std::string sync_text(const Scenario& s) {
  if (s.training.local_steps()) return "sync_every " + std::to_string(s.training.sync_every);
  const auto policy = std::ranges::find_if(s.training.sync, [](const SyncPolicy& p) { return p.kind != SyncKind::synchronous; });
  return "sync " + std::string(name_in(sync_kind_names, policy->kind));
}

/// How to do without.
std::string sync_remedy(const Scenario& s) { return s.training.local_steps() ? "sync_every 1" : "sync left out"; }

Objection about_steps_alone(const Scenario& s, std::vector<std::string> others, const std::string& sentence) {
  others.insert(others.begin(), s.training.local_steps() ? "training.sync_every" : "training.sync");
  return {std::move(others), sync_text(s) + sentence};
}

constexpr Rule policies_compare_one_kind_of_step{
    .holds = [](const Scenario& s) { return s.training.sync.empty() || !s.training.local_steps(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.sync", "training.sync_every"},
              "training.sync compares policies with a step that all replicas take together, and with training.sync_every " +
                  std::to_string(s.training.sync_every) +
                  " they take it alone; expected sync_every 1, and local SGD as `{kind: " + "local, every: " +
                  std::to_string(s.training.sync_every) + "}` of training.sync"};
    }};

constexpr Rule policies_have_replicas{.holds = [](const Scenario& s) { return s.training.sync.empty() || s.parallelism.dp > 1; },
                                      .objection = [](const Scenario&) -> Objection {
                                        return {{"training.sync", "parallelism.dp", "cluster.gpus"},
                                                "training.sync says who of the data-parallel replicas waits for whom, and with " +
                                                    named(Axis::dp, 1) + " there is one; expected " + named(Axis::dp, 2) +
                                                    " or more"};
                                      }};

std::optional<Objection> find_too_many_backups(const Scenario& s) {
  for (const SyncPolicy& policy : s.training.sync) {
    if (policy.backups < s.parallelism.dp) continue;
    const std::string field = s.training.sync.size() == 1 ? "training.sync.backups" : "training.sync";
    return Objection{{field, "training.sync.0.backups", "training.sync", "parallelism.dp"},
                     "training.sync has " + std::to_string(policy.backups) + " backup workers among " +
                         std::to_string(s.parallelism.dp) +
                         " data-parallel replicas, so that a step takes no gradient; expected " + "at most " +
                         std::to_string(s.parallelism.dp - 1)};
  }
  return {};
}

constexpr Rule servers_have_nics{
    .holds =
        [](const Scenario& s) {
          const auto has_servers = [](const SyncPolicy& policy) { return policy.servers > 0; };
          return s.cluster.nics_per_node > 0 || std::ranges::none_of(s.training.sync, has_servers);
        },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.sync.servers", "training.sync", "cluster.nics_per_node"},
              "training.sync.servers are nodes as the cluster's, and these have no NICs; expected nics_per_node 1 or more, or "
              "servers 0"};
    }};

constexpr Rule steps_alone_have_whole_states{
    .holds = [](const Scenario& s) { return !step_alone(s) || s.parallelism.zero == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return about_steps_alone(s, {"parallelism.zero"},
                               " with zero " + std::to_string(s.parallelism.zero) + ", which spreads a replica's " +
                                   (s.parallelism.zero == 3 ? "weights and optimizer states" : "optimizer states") +
                                   " over all replicas, so that none can take a step alone; expected zero 0, or " +
                                   sync_remedy(s));
    }};

constexpr Rule steps_alone_reduce_no_gradients{
    .holds = [](const Scenario& s) { return !step_alone(s) || !s.training.hierarchical_all_reduce; },
    .objection = [](const Scenario& s) -> Objection {
      return about_steps_alone(
          s, {"training.hierarchical_all_reduce"},
          " with hierarchical_all_reduce of gradients, which " +
              std::string(s.training.local_steps() ? "replicas then do not reduce" : "all replicas of a node reduce together") +
              "; expected at most one of the two");
    }};

constexpr Rule steps_alone_keep_states_on_gpus{
    .holds = [](const Scenario& s) { return !step_alone(s) || s.training.offload.optimizer == 0; },
    .objection = [](const Scenario& s) -> Objection {
      return about_steps_alone(
          s, {"training.offload.optimizer"},
          " with offload.optimizer, whose master weights no replica averages; expected at most one of the two");
    }};

/// Consecutive ranks, in the order of the axes in which experts are laid out, that lie in one data-parallel replica.
std::int64_t run_of_replica(const ParallelismSpec& p) {
  std::int64_t run = 1;
  for (const Axis axis : p.order) {
    if (axis == Axis::dp) break;
    if (axis == Axis::tp) run *= p.tp;
    if (axis == Axis::cp) run *= p.cp;
  }
  return run;
}

constexpr Rule steps_alone_have_all_experts{
    .holds =
        [](const Scenario& s) {
          const ParallelismSpec& p = s.parallelism;
          return !step_alone(s) || s.model.moe.experts == 0 || p.dp == 1 || run_of_replica(p) % p.expert_shards() == 0;
        },
    .objection = [](const Scenario& s) -> Objection {
      const ParallelismSpec& p = s.parallelism;
      return about_steps_alone(s, {"parallelism.ep", "parallelism.etp", "parallelism.order"},
                               " with experts spread over " + std::to_string(p.expert_shards()) +
                                   " ranks of several data-parallel replicas, each of which takes steps alone; expected etp" +
                                   (p.own_expert_axis ? "" : " * " + std::string(name_of(Axis::ep))) + " to divide " +
                                   std::to_string(run_of_replica(p)) + ", the tp * cp inside dp in parallelism.order" +
                                   (p.own_expert_axis ? "" : ", or expert_axis own"));
    }};

// Muon.

bool by_muon(const Scenario& s) { return s.training.optimizer == OptimizerKind::muon; }

constexpr Rule muon_has_whole_matrices{
    .holds = [](const Scenario& s) { return !by_muon(s) || s.parallelism.zero <= 2; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.optimizer", "parallelism.zero"},
              "optimizer muon with zero 3, whose ranks hold slices of a layer and no whole matrices, expected zero 0, 1 or 2, or "
              "optimizer adam"};
    }};

constexpr Rule muon_works_in_one_level{
    .holds =
        [](const Scenario& s) {
          return !by_muon(s) || (s.parallelism.hsdp == 0 && (!s.training.hierarchical_all_reduce || s.parallelism.zero == 0));
        },
    .objection = [](const Scenario& s) -> Objection {
      const bool hsdp = s.parallelism.hsdp > 0;
      return {{"training.optimizer", hsdp ? "parallelism.hsdp" : "training.hierarchical_all_reduce"},
              std::string("optimizer muon with ") + (hsdp ? "hsdp" : "hierarchical_all_reduce and zero") +
                  ", and matrices are dealt out in one level alone, expected optimizer adam, or not both"};
    }};

constexpr Rule muon_has_plain_gradients{
    .holds = [](const Scenario& s) { return !by_muon(s) || !s.training.compressor.keeps_residuals(); },
    .objection = [](const Scenario& s) -> Objection {
      return {{"training.optimizer", "training.compressor.method"},
              "optimizer muon with " + compressor_text(s) +
                  ", which takes parameters that lie one after the other, expected compressor.method cast, or optimizer adam"};
    }};

constexpr Rule muon_stays_on_gpus{
    .holds = [](const Scenario& s) { return !by_muon(s) || s.training.offload.optimizer == 0; },
    .objection = [](const Scenario&) -> Objection {
      return {{"training.optimizer", "training.offload.optimizer"},
              "optimizer muon with offload.optimizer, and its products are no work for a CPU, expected offload.optimizer 0, or "
              "optimizer adam"};
    }};

// Adafactor.

constexpr Rule adafactor_stays_on_gpus{
    .holds =
        [](const Scenario& s) { return s.training.optimizer != OptimizerKind::adafactor || s.training.offload.optimizer == 0; },
    .objection = [](const Scenario&) -> Objection {
      return {
          {"training.optimizer", "training.offload.optimizer"},
          "optimizer adafactor with offload.optimizer, and a matrix has no states of its elements to keep on the host, expected "
          "offload.optimizer 0, or optimizer adam"};
    }};

constexpr Rule rules_of_data_parallel[] = {hsdp_has_slices,
                                           hsdp_divides_group,
                                           kept_weights_are_not_dropped,
                                           rule_of<find_wrong_hierarchy>,
                                           compressed_gradients_have_bytes,
                                           compressors_have_whole_gradients,
                                           compressors_work_in_one_level,
                                           compressors_send_every_step,
                                           compressors_send_in_all_steps_alike,
                                           compressors_are_not_cast,
                                           powersgd_is_multiplied,
                                           policies_compare_one_kind_of_step,
                                           policies_have_replicas,
                                           rule_of<find_too_many_backups>,
                                           servers_have_nics,
                                           steps_alone_have_whole_states,
                                           steps_alone_reduce_no_gradients,
                                           steps_alone_keep_states_on_gpus,
                                           steps_alone_have_all_experts,
                                           muon_has_whole_matrices,
                                           muon_works_in_one_level,
                                           muon_has_plain_gradients,
                                           muon_stays_on_gpus,
                                           adafactor_stays_on_gpus};

}  // namespace

std::span<const Rule> data_parallel_rules() { return rules_of_data_parallel; }

}  // namespace tandem::scenarios
