#include <string>

#include "scenarios/validate.h"

namespace tandem {

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
  if (scenario.cluster.gpu.peak[static_cast<std::size_t>(training.precision)] == 0)
    refuse(document, {"training.precision", "cluster.gpu"},
           scenario.cluster.gpu.name + " has no " + std::string(name_of(training.precision)) +
               " arithmetic, expected a precision that stands in cluster.gpu.peak_TFLOPS");
}

}  // namespace tandem
