#pragma once

#include <string>

#include "runtime/host/unsharded.h"
#include "scenarios/spec/scenario.h"
#include "studies/step/executed_step.h"

namespace tandem::studies {

/// An executed step as files, for programs that compute the same step by themselves: what the unsharded model starts from and
/// what becomes of it, each parameter once, whatever the mesh. The folder holds
///
///   step.json              the model, the batch, the routing, the optimizer's settings, the loss
///   weights.safetensors    before the step           updated.safetensors    after it
///   optimizer.safetensors  the moments before the step: NAME.momentum and NAME.variance, as far as the optimizer has them
///   gradients.safetensors  what the optimizer reads, before they are clipped
///   tokens.safetensors     inputs and labels [global batch, sequence], longer where the model predicts further tokens
///   patches.safetensors    with an encoder: of each sequence's images [global batch, positions, numbers of a patch]
///
/// and appears whole or not at all: it is made beside its place and renamed.
class StepDump {
 public:
  /// Before the work begins. Throws InputError, placed at `file`, where the step would not be one that all ranks take together on
  /// the host; std::runtime_error where `folder` cannot be made or holds something.
  StepDump(const Scenario& scenario, const std::string& file, const ExecutionChoice& backend, std::string folder);

  /// Takes what the step starts from, before it is executed.
  void begin(const ExecutedStep& step) { before_ = gather_unsharded(step.memory()); }

  /// After the step was executed. Throws std::runtime_error where the folder cannot be written, or where ranks that hold the same
  /// parameter hold different ones.
  void write(const ExecutedStep& step, const Scenario& scenario) const;

 private:
  std::string folder_;
  UnshardedState before_;
};

}  // namespace tandem::studies
