#include <string>

#include "scenarios/checks/checks.h"

namespace tandem::scenarios {

void validate_training(const Scenario& scenario, const YamlNode& document) {
  const ModelSpec& model = scenario.model;
  const TrainingSpec& training = scenario.training;
  if (!model.rotary && training.sequence > model.max_positions)
    refuse(document, {"training.sequence", "model.max_positions"},
           "sequence " + std::to_string(training.sequence) + " is longer than the " + std::to_string(model.max_positions) +
               " learned positions of the model, expected at most that");
  if (training.recompute.mla_up && !model.mla.enabled())
    refuse(document, {"training.recompute", "model.mla"},
           "recompute of mla-up without model.mla, expected a model with multi-head latent attention");
  const auto check_arithmetic = [&](const Device& gpu, const std::string& field) {
    if (gpu.peak[static_cast<std::size_t>(training.precision)] > 0) return;
    refuse(document, {"training.precision", field},
           gpu.name + " has no " + std::string(name_of(training.precision)) +
               " arithmetic, expected a precision that stands in " + field + ".peak_TFLOPS");
  };
  check_arithmetic(scenario.cluster.gpu, "cluster.gpu");
  for (std::size_t i = 0; i < scenario.cluster.other_gpus.size(); ++i)
    check_arithmetic(scenario.cluster.other_gpus[i].gpu, "cluster.other_gpus." + std::to_string(i) + ".gpu");
}

}  // namespace tandem::scenarios
