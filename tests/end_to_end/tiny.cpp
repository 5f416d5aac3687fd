#include "tests/end_to_end/tiny.h"

#include <sstream>

#include "scenarios/load.h"

namespace tandem {
namespace {

const std::string model_and_training = R"(
model: {layers: 4, hidden: 32, heads: 8, kv_heads: 4, head_dim: 4, ffn: 48, gated: true, vocab: 96, norm: rms}
training: {sequence: 16, micro_batch: 1, global_batch: 8, precision: fp32, schedule: 1f1b}
parallelism: {dp: 1}
)";

}  // namespace

Scenario tiny_model(std::vector<std::string> overrides) {
  return parse_scenario("name: tiny\ncluster: host\n" + model_and_training, "tiny.yaml", overrides);
}

Scenario tiny_cluster(std::vector<std::string> overrides) {
  return parse_scenario("name: tiny\ncluster: {preset: dgx-h100}\n" + model_and_training, "tiny.yaml", overrides);
}

std::vector<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

}  // namespace tandem
