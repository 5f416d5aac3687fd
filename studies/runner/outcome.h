#pragma once

#include <string>

#include "studies/runner/results_database.h"
#include "studies/runner/worker_pool.h"

namespace tandem::studies {

/// What the end of a point's process means.
struct Outcome {
  PointStatus status = PointStatus::failed;
  std::string message;  ///< one line; empty for a result
  std::string json;
};

/// `name` stands for the scenario in the message.
Outcome outcome_of(const FinishedWorker& worker, const std::string& name);

}  // namespace tandem::studies
