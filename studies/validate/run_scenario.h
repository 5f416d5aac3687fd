#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/run_defaults.h"
#include "scenarios/spec/scenario.h"
#include "studies/validate/runs_file.h"

namespace tandem::studies {

/// A measured run as a scenario.
struct RunScenario {
  std::string yaml;  ///< the scenario as a user would write it, in one line, with presets by name
  Scenario scenario;
  std::vector<std::string> notes;  ///< what the scenario leaves out or had to choose, one sentence each
};

/// Returns the scenario of a run in which nothing that matters is unknown (see plausible.h). The scenario's own reader reads the
/// cells, so that a run keeps the rules of every scenario and an error's place is a cell. Throws InputError where the cells make
/// no scenario.
///
/// What the columns leave open follows from what they say:
/// - The cluster is the pod that is sold with the GPU, as the GPU's preset names it: its latencies, efficiencies and switches.
///   GPU, framework and model may be files as in a scenario, counted from the table's folder.
/// - A model without a preset is a GPT (layer norm, learned positions, tied embeddings) where its MLP is not gated, a Llama (RMS
///   norm, rotary positions) where it is. A blank `gated` is 0 where ffn is four times hidden.
/// - A vocabulary that tp does not divide is padded to a multiple of 128 tp, Megatron-LM's --make-vocab-size-divisible-by.
/// - Layers that pp does not divide, without a layout: the loss, or embedding and loss, take a layer's place where that makes
/// them
///   fit, else the last stage has fewer, and if its chunks can't share them, the last chunk or chunks.
/// - A blank schedule is 1f1b, or interleaved-1f1b where vpp is above 1. A blank etp is tp where the framework splits experts
///   like that, else 1.
/// - Gradients of a run in fp8 or fp4 that does not say are in the type in which the framework's recipes have them.
RunScenario scenario_of(const RunRow& row);

/// Returns what the run's framework does where the run does not say; what a generic framework does where the run names none.
scenarios::FrameworkRuns runs_of_framework(const RunRow& row);

/// Returns the layers of the run's model; 0 where the row does not say.
std::int64_t layers_of(const RunRow& row);

/// Whether the run's model has experts, by its columns or else by its preset.
bool has_experts(const RunRow& row);

}  // namespace tandem::studies
