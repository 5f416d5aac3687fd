#include "tests/end_to_end/tiny.h"

#include <sstream>

#include "scenarios/reading/load.h"

namespace tandem::studies {
namespace {

const std::string model_and_training = R"(
model: {layers: 4, hidden: 32, heads: 8, kv_heads: 4, head_dim: 4, ffn: 48, gated: true, vocab: 96, norm: rms}
training: {sequence: 16, micro_batch: 1, global_batch: 8, precision: fp32, schedule: 1f1b}
parallelism: {dp: 1}
)";

}  // namespace

Scenario tiny_model(const std::vector<std::string>& overrides) {
  return parse_scenario("name: tiny\ncluster: host\n" + model_and_training, "tiny.yaml", overrides);
}

Scenario tiny_cluster(const std::vector<std::string>& overrides) {
  return parse_scenario("name: tiny\ncluster: {preset: dgx-h100}\n" + model_and_training, "tiny.yaml", overrides);
}

Scenario pure_pipeline(int stages, int micro_batches, const std::string& schedule, int chunks) {
  return tiny_cluster({
      "model={layers: 64, hidden: 16384, heads: 128, head_dim: 128, kv_heads: 128, ffn: 65536, vocab: 64}",
      "training.sequence=16384",
      "training.precision=bf16",
      "training.global_batch=" + std::to_string(micro_batches),
      "training.schedule=" + schedule,
      "parallelism.pp=" + std::to_string(stages),
      "parallelism.vpp=" + std::to_string(chunks),
      "cluster.nvlink_GBps=1e6",
      "cluster.nic_gbps=1e6",
      "cluster.nvlink_latency_us=0",
      "cluster.nic_latency_us=0",
      "cluster.switch_latency_us=0",
  });
}

Scenario with_micro_batches(Scenario scenario, std::int64_t count) {
  TrainingSpec& training = scenario.training;
  training.global_batch = count * scenario.parallelism.data_replicas() * training.micro_batch;
  return scenario;
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

}  // namespace tandem::studies
