#include "studies/relief/levers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

#include "scenarios/schedules/schedule_table.h"
#include "scenarios/spec/names.h"

namespace tandem::studies {
namespace {

using Settings = std::vector<LeverSetting>;

constexpr std::array factors{2, 4, 8};

std::string change(std::string_view path, std::int64_t value) { return fmt::format("{}={}", path, value); }

/// A size times 2, 4 and 8, up to `most`. With `takes_replicas`, it takes the ranks from data parallelism.
Settings grown(const Scenario& scenario, std::string_view path, std::int64_t size, std::int64_t most, bool takes_replicas) {
  Settings settings;
  for (const std::int64_t factor : factors) {
    if (size * factor > most || (takes_replicas && scenario.parallelism.dp % factor != 0)) break;
    settings.push_back({{change(path, size * factor)}, takes_replicas ? factor : 1});
  }
  return settings;
}

std::string list_of_modules(const RecomputeSpec& recompute) {
  std::string text;
  for (const Named<RecomputeModule>& module : recompute_module_names)
    if (recompute.*module.value) text += (text.empty() ? "" : ", ") + std::string(module.name);
  return "training.recompute=[" + text + "]";
}

/// Everything that is recomputed now, and these modules.
RecomputeSpec with_modules(RecomputeSpec now, const ModelSpec& model, bool attention, bool others, bool mlp) {
  now.attention |= attention;
  now.norm |= others;
  now.activation |= others;
  now.mla_up |= others && model.mla.enabled();
  now.mlp |= mlp;
  if (mlp) now.mlp_every = 1;
  return now;
}

/// By module; then whole layers, every fourth first; then segments of layers, which keep one input together.
Settings more_recompute(const Scenario& scenario) {
  const RecomputeSpec& now = scenario.training.recompute;
  Settings settings;
  if (now.every == 0) {
    std::vector<RecomputeSpec> tried{now};
    for (const auto& [attention, others, mlp] : {std::array{true, false, false}, std::array{false, true, false},
                                                 std::array{true, true, false}, std::array{false, true, true}}) {
      const RecomputeSpec spec = with_modules(now, scenario.model, attention, others, mlp);
      if (spec.mlp_every > 1 || std::ranges::find(tried, spec) != tried.end()) continue;  // a list has MLPs of all layers
      tried.push_back(spec);
      settings.push_back({{list_of_modules(spec)}});
    }
  }
  for (const std::int64_t every : {4, 2, 1}) {
    if (now.every > 0 && every >= now.every) continue;
    LeverSetting setting{{"training.recompute=full"}};
    if (every > 1) setting.changes.push_back(change("training.recompute_every", every));
    if (every == 1 && now.every > 1) setting.changes.emplace_back("training.recompute_every=");
    settings.push_back(std::move(setting));
  }
  for (const std::int64_t segment : factors) {
    if (segment <= now.segment) continue;
    LeverSetting setting{{"training.recompute=full", change("training.recompute_segment", segment)}};
    if (now.every > 1) setting.changes.emplace_back("training.recompute_every=");
    settings.push_back(std::move(setting));
  }
  return settings;
}

/// Where the scenario describes the host, whose figures no preset has.
Settings offloaded_states(const Scenario& scenario) {
  const HostSpec& host = scenario.cluster.host;
  if (!(host.link_GBps > 0) || !(host.memory_GBps > 0) || scenario.training.offload.optimizer == 1) return {};
  return {{{"training.offload.optimizer=1", "training.offload.overlap_optimizer=true"}}};
}

/// A quarter, half or all of a stage's layers.
Settings offloaded_activations(const Scenario& scenario) {
  if (!(scenario.cluster.host.link_GBps > 0)) return {};
  const std::int64_t of_stage = scenario.model.layers / scenario.parallelism.pp, now = scenario.training.offload.activations;
  Settings settings;
  for (const std::int64_t part : {4, 2, 1})
    if (const std::int64_t layers = of_stage / part; layers > now)
      settings.push_back({{change("training.offload.activations", layers)}});
  return settings;
}

Settings sequence_parallelism(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  if (p.tp == 1 || p.sp) return {};
  return {{{"parallelism.sp=true"}}};
}

Settings more_zero(const Scenario& scenario) {
  Settings settings;
  for (std::int64_t zero = scenario.parallelism.zero + 1; zero <= 3; ++zero)
    settings.push_back({{change("parallelism.zero", zero)}});
  return settings;
}

Settings thinner_experts(const Scenario& scenario) {
  if (scenario.model.moe.experts == 0) return {};
  return grown(scenario, "parallelism.etp", scenario.parallelism.etp, scenario.cluster.gpus_per_node, false);
}

Settings fewer_experts(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  return grown(scenario, "parallelism.ep", p.ep, scenario.model.moe.experts, p.own_expert_axis);
}

Settings smaller_micro_batch(const Scenario& scenario) {
  Settings settings;
  for (const std::int64_t factor : factors) {
    if (scenario.training.micro_batch % factor != 0) break;
    settings.push_back({{change("training.micro_batch", scenario.training.micro_batch / factor)}});
  }
  return settings;
}

Settings more_tensor_parallelism(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  Settings settings = grown(scenario, "parallelism.tp", p.tp, scenario.cluster.gpus_per_node, true);
  if (!p.sp)
    for (LeverSetting& setting : settings) setting.changes.emplace_back("parallelism.sp=true");
  return settings;
}

Settings more_context_parallelism(const Scenario& scenario) {
  return grown(scenario, "parallelism.cp", scenario.parallelism.cp, scenario.training.sequence, true);
}

/// As many chunks as before in all, where a stage has several: its layers stay the same.
Settings more_stages(const Scenario& scenario) {
  const ParallelismSpec& p = scenario.parallelism;
  Settings settings = grown(scenario, "parallelism.pp", p.pp, scenario.model.layers + 2, true);
  for (LeverSetting& setting : settings) {
    if (p.vpp == 1 || p.vpp % setting.replicas != 0) {
      if (!p.pipeline_layout.empty()) setting.changes.emplace_back("parallelism.pipeline_layout=");
      continue;
    }
    setting.changes.push_back(change("parallelism.vpp", p.vpp / setting.replicas));
    if (p.vpp == setting.replicas)
      setting.changes.push_back(fmt::format("training.schedule={}", name_of(ScheduleKind::one_f_one_b)));
  }
  return settings;
}

const std::array all_levers{Lever{"recompute", more_recompute},
                            Lever{"sp", sequence_parallelism},
                            Lever{"zero", more_zero},
                            Lever{"etp", thinner_experts},
                            Lever{name_of(Axis::ep), fewer_experts},
                            Lever{"micro-batch", smaller_micro_batch},
                            Lever{name_of(Axis::tp), more_tensor_parallelism},
                            Lever{name_of(Axis::cp), more_context_parallelism},
                            Lever{name_of(Axis::pp), more_stages},
                            Lever{"offload of states", offloaded_states},
                            Lever{"offload of activations", offloaded_activations}};

}  // namespace

std::span<const Lever> levers() { return all_levers; }

}  // namespace tandem::studies
