#include <string>

#include "scenarios/nearest.h"
#include "scenarios/validate.h"

namespace tandem {
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

void check_schedule(const Scenario& scenario, const YamlNode& document) {
  const ParallelismSpec& p = scenario.parallelism;
  const bool interleaved = scenario.training.schedule == ScheduleKind::interleaved;
  if (interleaved && p.pp == 1)
    refuse(document, {"training.schedule", "parallelism.pp"},
           "interleaved-1f1b with pp 1, expected pp 2 or more, or schedule 1f1b");
  if (interleaved && p.vpp == 1)
    refuse(document, {"training.schedule", "parallelism.vpp"},
           "interleaved-1f1b with vpp 1, expected vpp 2 or more, or schedule 1f1b");
  if (!interleaved && p.vpp > 1)
    refuse(document, {"parallelism.vpp", "training.schedule"},
           "vpp " + std::to_string(p.vpp) + " without schedule interleaved-1f1b, expected that schedule or vpp 1");
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

}  // namespace

void validate_pipeline(const Scenario& scenario, const YamlNode& document) {
  check_schedule(scenario, document);
  check_layers(scenario, document);
  check_batch(scenario, document);
}

}  // namespace tandem
