#pragma once

#include <string>
#include <vector>

#include "scenarios/spec/scenario.h"

namespace tandem::studies {

/// A dense model small enough to execute in milliseconds, on one host node; `overrides` as for --set.
Scenario tiny_model(const std::vector<std::string>& overrides);

/// The same model on DGX H100 nodes, to simulate.
Scenario tiny_cluster(const std::vector<std::string>& overrides);

/// A pipeline whose communication is free and whose ends (embedding, LM head, optimizer) weigh nothing beside its layers.
Scenario pure_pipeline(int stages, int micro_batches, const std::string& schedule, int chunks = 1);

/// The same with so many micro-batches, as large as before.
Scenario with_micro_batches(Scenario scenario, std::int64_t count);

/// "parallelism.tp=2 training.sequence=8" as separate overrides.
std::vector<std::string> words(const std::string& text);

}  // namespace tandem::studies
