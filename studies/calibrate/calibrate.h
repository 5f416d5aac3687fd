#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/launch/launcher.h"
#include "scenarios/spec/scenario.h"
#include "studies/calibrate/measure.h"

namespace tandem::studies {

struct CalibrationRequest {
  std::string backend;               ///< host_backend or cuda_backend
  std::vector<Scenario> scenarios;   ///< whose kernels are all measured
  std::vector<TimedKernel> shapes;   ///< further kernels to measure
  Seconds budget = 180;              ///< of time for everything
  bool all_grids = false;            ///< regular grids in fp32, too, which no step on GPUs is trained in
  std::function<void()> begin = {};  ///< called before anything is measured, on the process that will have the result
  OnMeasuring told = {};
};

/// Measures kernels, and collectives among the host's ranks or the GPUs of the launch: a tenth of the budget goes to those.
/// Every process of the launch calls this. Rank 0 returns the result; the other ranks return nothing as soon as the collectives
/// are measured, and rank 0 goes on alone.
///
/// Throws std::runtime_error where nothing could be measured or the launch cannot be, and what `begin` throws.
std::optional<Calibration> calibrate(const Launch& launch, const CalibrationRequest& request);

}  // namespace tandem::studies
