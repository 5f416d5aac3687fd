#pragma once

#include <memory>
#include <vector>

#include "scenarios/spec/scenario.h"
#include "sim/blame.h"
#include "studies/step/simulated_step.h"

namespace tandem::studies {

/// Finds what would make a step faster in a child of this process, which meanwhile sums the step up and draws it.
class BlameBeside {
 public:
  BlameBeside();
  ~BlameBeside();
  BlameBeside(const BlameBeside&) = delete;
  BlameBeside& operator=(const BlameBeside&) = delete;

  /// Begins with the step as it is now; with one that it was told of before, it ends. For `SimulationOptions::simulated`.
  void begin(const Scenario& scenario, const FreshStep& step);
  /// Waits for what was found of the last step that was told of; nothing where none was. To be called once. Throws
  /// std::runtime_error where a simulation dies, with the sentence it died with.
  std::vector<sim::Blame> found();

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

}  // namespace tandem::studies
