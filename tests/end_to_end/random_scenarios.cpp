#include "tests/end_to_end/random_scenarios.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

#include "runtime/base/input_error.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/random_clusters.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies {
namespace {

/// Tries to read, and to lay out: faults may cut a fabric in two.
std::optional<Scenario> valid(const std::vector<std::string>& overrides) {
  try {
    Scenario scenario = tiny_cluster(overrides);
    make_world(scenario, true);
    return scenario;
  } catch (const InputError&) {
    return {};
  }
}

/// Takes on the further overrides, all at once, or else those that are valid beside the ones before.
void extend(std::vector<std::string>& overrides, Scenario& scenario, const std::vector<std::string>& further) {
  std::vector<std::string> all = overrides;
  all.insert(all.end(), further.begin(), further.end());
  if (std::optional<Scenario> taken = valid(all)) {
    overrides = std::move(all);
    scenario = std::move(*taken);
    return;
  }
  for (const std::string& one : further) {
    overrides.push_back(one);
    if (std::optional<Scenario> taken = valid(overrides)) {
      scenario = std::move(*taken);
    } else {
      overrides.pop_back();
    }
  }
}

/// Seeds below draw what they always drew: their digests are stored.
constexpr std::uint32_t first_newer_seed = 400;

std::optional<RandomScenario> random_scenario(std::uint32_t seed) {
  const bool newer = seed >= first_newer_seed && seed % 2 == 0;
  RandomScenario drawn{
      .seed = seed, .overrides = (newer ? newer_random_step(seed) : random_step(seed)).overrides, .scenario = {}};
  std::optional<Scenario> step = valid(drawn.overrides);
  if (!step) return {};
  drawn.scenario = std::move(*step);
  extend(drawn.overrides, drawn.scenario, random_network(seed, static_cast<int>(drawn.scenario.parallelism.world_size())));
  constexpr std::uint32_t other_numbers = 0x9E3779B9;
  std::mt19937 random(seed ^ other_numbers);
  constexpr unsigned one_of = 6;
  std::vector<std::string> further;
  for (const FurtherField& field : further_fields())
    if (random() % one_of == 0) further.push_back(field.path + "=" + field.values[random() % field.values.size()]);
  extend(drawn.overrides, drawn.scenario, further);
  return drawn;
}

}  // namespace

const std::vector<FurtherField>& further_fields() {
  static const std::vector<FurtherField> all{
      {"model.vocab", {"192", "480"}},
      {"model.rotary_base", {"10000"}},
      {"model.sliding_rotary_base", {"10000"}},
      {"model.rotary_share", {"0.5"}},
      {"model.rotary_full_attention", {"false"}},
      {"model.attention_scale", {"0.3"}},
      {"model.moe.pad_to_capacity", {"false"}},
      {"model.moe.bias_update_rate", {"0.01"}},
      {"model.moe.routing", {"expert-choice"}},
      {"model.indexer.loss_coefficient", {"0.1"}},
      {"model.mamba.conv", {"2", "3"}},
      {"model.linear_attention.conv", {"2", "3"}},
      {"model.residual.full_attention_beta", {"0.7"}},
      {"model.residual.linear_attention_beta", {"0.7"}},
      {"model.residual.mlp_alpha", {"1.2"}},
      {"cluster.nvlink_GBps", {"225", "900"}},
      {"cluster.nic_gbps", {"100", "800"}},
      {"cluster.nvlink_efficiency", {"0.6"}},
      {"cluster.nic_efficiency", {"0.7"}},
      {"cluster.nvlink_latency_us", {"0", "5"}},
      {"cluster.nic_latency_us", {"0", "20"}},
      {"cluster.switch_latency_us", {"0", "3"}},
      {"cluster.nvls", {"false"}},
      {"cluster.host", {"{link_GBps: 40, link_latency_us: 2, memory_GBps: 300}"}},
      {"cluster.gpu.memory_GiB", {"10", "300"}},
      {"cluster.gpu.memory_bandwidth_GBps", {"1000", "9000"}},
      {"cluster.gpu.multiprocessors", {"0", "64"}},
      {"cluster.gpu.architecture", {"ampere", "blackwell", "unknown"}},
      {"cluster.gpu.peak_TFLOPS.bf16", {"300", "3000"}},
      {"cluster.gpu.peak_TFLOPS.fp32", {"20", "500"}},
      {"cluster.gpu.efficiency.memory", {"0.5"}},
      {"cluster.gpu.efficiency.permute", {"0.4"}},
      {"cluster.gpu.efficiency.scan", {"0.3"}},
      {"cluster.gpu.efficiency.cross_entropy", {"0.4"}},
      {"cluster.gpu.efficiency.launch_us", {"0", "12"}},
      {"cluster.gpu.efficiency.spread", {"0.01", "0.05"}},
      {"cluster.gpu.efficiency.attention.kernel", {"unfused", "flash-2", "cudnn"}},
      {"cluster.fabric.tiers", {"3"}},
      {"parallelism.dispatcher", {"deepep", "hybridep"}},
      {"parallelism.scatter_gather", {"true"}},
      {"training.documents.longest", {"5"}},
      {"training.num_layers_at_start_in_bf16", {"2"}},
      {"training.num_layers_at_end_in_bf16", {"2"}},
      {"training.cuda_graph", {"attention", "full"}},
      {"training.second_moment_dtype", {"bf16", "fp16"}},
      {"training.master_dtype", {"fp32", "fp16"}},
      {"training.cross_entropy_fusion", {"true", "false"}},
      {"training.framework", {"megatron-core", "torchtitan", "deepspeed", "megatron-2021", "nemo", "deepseek"}},
      {"training.compiled", {"true", "false"}},
      {"training.offload.optimizer", {"0.5", "1"}},
      {"training.offload.overlap_optimizer", {"true"}},
      {"training.offload.activations", {"1"}},
      {"training.sync", {"[{kind: backup, backups: 1}]", "[{kind: asynchronous}]", "[{kind: stale, staleness: 2}]"}},
      {"faults.jitter", {"{kernel: 0.05, rank: 0.02, communication: 0.1, draws: 3}"}},
  };
  return all;
}

std::string RandomScenario::text() const {
  return std::accumulate(overrides.begin(), overrides.end(), "seed " + std::to_string(seed) + ":",
                         [](const std::string& all, const std::string& one) { return all + " --set '" + one + "'"; });
}

std::vector<RandomScenario> random_scenarios(std::size_t count, std::uint32_t first, std::uint32_t stride) {
  std::vector<RandomScenario> drawn;
  for (std::size_t tries = 0; tries < 3 * count && drawn.size() < count; ++tries)
    if (std::optional<RandomScenario> one = random_scenario(first + static_cast<std::uint32_t>(tries) * stride))
      drawn.push_back(std::move(*one));
  return drawn;
}

std::optional<Scenario> with_changes(const RandomScenario& drawn, const std::vector<std::string>& changes) {
  std::vector<std::string> overrides = drawn.overrides;
  overrides.insert(overrides.end(), changes.begin(), changes.end());
  return valid(overrides);
}

}  // namespace tandem::studies
