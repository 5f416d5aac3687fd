#include <string>

#include "runtime/base/nearest.h"
#include "scenarios/checks/checks.h"

namespace tandem::scenarios {
namespace {

/// Which account_for_* options would make `layers` divide over `chunks`, given that `accounted` of them are on.
std::string accounting_advice(std::int64_t layers, std::int64_t accounted, std::int64_t chunks) {
  if (accounted < 1 && (layers + 1) % chunks == 0) return "; account_for_loss would make them fit";
  if (accounted < 2 && (layers + 2) % chunks == 0) return "; account_for_embedding and account_for_loss would make them fit";
  return {};
}

void check_layers(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t layers = scenario.model.layers;
  const std::int64_t accounted = (p.account_for_embedding ? 1 : 0) + (p.account_for_loss ? 1 : 0);
  const std::int64_t chunks = p.pp * p.vpp;
  if ((layers + accounted) % chunks == 0) return;
  std::string found = std::to_string(layers) + " layers";
  if (p.account_for_embedding) found += " + 1 for the embedding";
  if (p.account_for_loss) found += " + 1 for the loss";
  std::string advice = accounting_advice(layers, accounted, chunks);
  if (advice.empty()) advice = "; nearest pp * vpp that they do: " + joined(nearest_divisors(layers + accounted, chunks));
  refuse(
      document,
      {"parallelism.pp", "parallelism.vpp", "model.layers", "parallelism.account_for_embedding", "parallelism.account_for_loss"},
      found + " do not divide over pp " + std::to_string(p.pp) + " * vpp " + std::to_string(p.vpp) + " = " +
          std::to_string(chunks) + " model chunks" + advice);
}

/// The layers that first_stage_layers and last_stage_layers leave must divide over the other stages.
void check_uneven_layers(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const auto refuse_split = [&](const std::string& sentence) {
    refuse(document, {"parallelism.first_stage_layers", "parallelism.last_stage_layers", "parallelism.pp", "model.layers"},
           sentence);
  };
  if (p.account_for_embedding || p.account_for_loss)
    refuse_split(
        "first_stage_layers and last_stage_layers exclude account_for_embedding and account_for_loss, expected one of the two");
  if (p.pp == 1) refuse_split("first_stage_layers and last_stage_layers need pp 2 or more");
  std::int64_t left = scenario.model.layers, stages = p.pp;
  for (const std::int64_t given : {p.first_stage_layers, p.last_stage_layers}) {
    if (given % p.vpp != 0)
      refuse_split(std::to_string(given) + " layers of one stage do not divide over vpp " + std::to_string(p.vpp) +
                   "; nearest that do: " + joined(nearest_multiples(p.vpp, given)));
    left -= given;
    if (given > 0) --stages;
  }
  const std::string rest = std::to_string(scenario.model.layers) + " layers less first_stage_layers " +
                           std::to_string(p.first_stage_layers) + " and last_stage_layers " +
                           std::to_string(p.last_stage_layers) + " leave " + std::to_string(left);
  if (stages == 0 && left != 0) refuse_split(rest + ", but both stages are given, expected a sum of all layers");
  if (left < 0) refuse_split(rest + ", expected fewer");
  if (stages > 0 && left % (stages * p.vpp) != 0)
    refuse_split(rest + ", which do not divide over the other " + std::to_string(stages) + " stages * vpp " +
                 std::to_string(p.vpp));
}

struct ChunkRule {
  ScheduleKind schedule;
  const char* name;
  std::int64_t least, most;  ///< of vpp
  const char* expected;
};

constexpr ChunkRule chunk_rules[] = {
    {ScheduleKind::interleaved, "interleaved-1f1b", 2, 10'000, "vpp 2 or more, or schedule 1f1b"},
    {ScheduleKind::zero_bubble_v, "zb-v", 2, 2, "vpp 2, the two arms of its V"},
    {ScheduleKind::dualpipe, "dualpipe", 1, 1, "vpp 1: it holds two chunks of two copies of the model by itself"},
};

void check_schedule(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::string vpp = "vpp " + std::to_string(p.vpp);
  bool ruled = false;
  for (const ChunkRule& rule : chunk_rules) {
    if (rule.schedule != scenario.training.schedule) continue;
    ruled = true;
    const std::string name = rule.name;
    if (p.pp == 1)
      refuse(document, {"training.schedule", "parallelism.pp"}, name + " with pp 1, expected pp 2 or more, or schedule 1f1b");
    if (p.vpp < rule.least || p.vpp > rule.most)
      refuse(document, {"training.schedule", "parallelism.vpp"}, name + " with " + vpp + ", expected " + rule.expected);
  }
  if (!ruled && p.vpp > 1)
    refuse(document, {"parallelism.vpp", "training.schedule"},
           vpp + " without schedule interleaved-1f1b, expected that schedule or vpp 1");
  if (scenario.training.schedule == ScheduleKind::dualpipe && p.pp % 2 != 0)
    refuse(document, {"training.schedule", "parallelism.pp"},
           "dualpipe with pp " + std::to_string(p.pp) + ", expected an even number of stages, each the mirror of another");
}

void check_batch(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const TrainingSpec& training = scenario.training;
  const std::int64_t batch = training.global_batch;
  const std::int64_t step = p.data_replicas() * training.micro_batch;
  const std::string replicas = "dp " + std::to_string(p.dp) + (p.own_expert_axis ? " * ep " + std::to_string(p.ep) : "");
  const auto refuse_batch = [&](const std::string& sentence, std::int64_t unit) {
    refuse(document, {"training.global_batch", "training.micro_batch", "parallelism.dp", "cluster.gpus"},
           "global_batch " + std::to_string(batch) + sentence + "; nearest that are: " + joined(nearest_multiples(unit, batch)));
  };
  if (batch % step != 0)
    refuse_batch(" is not a multiple of " + replicas + " * micro_batch " + std::to_string(training.micro_batch), step);
  if (training.schedule == ScheduleKind::interleaved && training.micro_batches(p) % p.pp != 0)
    refuse_batch(" makes " + std::to_string(training.micro_batches(p)) +
                     " micro-batches, not a multiple of pp, as interleaved-1f1b needs: of " + replicas + " * micro_batch " +
                     std::to_string(training.micro_batch) + " * pp " + std::to_string(p.pp),
                 step * p.pp);
}

/// Half of the micro-batches enter at each end, and at least one per stage.
void check_dualpipe_batch(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const std::int64_t micro_batches = scenario.training.micro_batches(p);
  if (scenario.training.schedule != ScheduleKind::dualpipe || (micro_batches % 2 == 0 && micro_batches >= 2 * p.pp)) return;
  refuse(document, {"training.global_batch", "training.micro_batch", "parallelism.dp", "parallelism.pp", "cluster.gpus"},
         "global_batch " + std::to_string(scenario.training.global_batch) + " makes " + std::to_string(micro_batches) +
             " micro-batches, expected an even number of at least 2 * pp = " + std::to_string(2 * p.pp) + ", as dualpipe needs");
}

}  // namespace

void validate_pipeline(const Scenario& scenario, const YamlNode& document) {
  check_schedule(scenario, document);
  const bool uneven = scenario.parallelism.first_stage_layers > 0 || scenario.parallelism.last_stage_layers > 0;
  uneven ? check_uneven_layers(scenario, document) : check_layers(scenario, document);
  check_batch(scenario, document);
  check_dualpipe_batch(scenario, document);
}

}  // namespace tandem::scenarios
