#include "studies/calibrate/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "runtime/backend_names.h"
#include "runtime/host/collective_timer.h"
#include "studies/calibrate/launched_collectives.h"

namespace tandem::studies {
namespace {

constexpr double part_of_collectives = 0.1, part_of_planning = 0.1;

/// What is measured with, and what collectives took among its ranks.
struct Measured {
  CalibrationBench bench;
  std::vector<MeasuredCollective> collectives;
};

Measured measured_on_host(Seconds budget, const OnMeasuring& told) {
  std::vector<MeasuredCollective> collectives = collectives_worth_measuring_on_host();
  std::size_t begun = 0;
  time_on_host(collectives, budget, [&](const MeasuredCollective&) {
    if (told) told("collectives", static_cast<double>(begun++) / static_cast<double>(collectives.size()), std::nullopt);
  });
  return {open_host_bench(), std::move(collectives)};
}

/// Nothing on all ranks but 0, which goes on alone: the others need not wait until it has measured the kernels.
std::optional<Measured> measured_with_others(const Launch& launch, Seconds budget, const CalibrationRequest& request) {
  const auto progress = [&](const std::string& what, double share) {
    if (request.told) request.told(what, share, std::nullopt);
  };
  std::optional<LaunchedCollectives> launched =
      measure_with_others(launch, {.budget = budget, .begin = request.begin, .progress = progress});
  if (!launched) return std::nullopt;
  Measured measured{open_gpu_bench(std::move(launched->gpu)), std::move(launched->collectives)};
  measured.bench.origin.device = launched->device;
  return measured;
}

std::optional<Measured> measured_collectives(const Launch& launch, Seconds budget, const CalibrationRequest& request) {
  if (launch.size > 1) return measured_with_others(launch, budget, request);
  if (request.begin) request.begin();
  if (request.backend == host_backend) return measured_on_host(budget, request.told);
  return Measured{open_gpu_bench(open_gpu()), {}};
}

Calibration measure_kernels(const CalibrationBench& bench, const CalibrationRequest& request, Seconds budget) {
  const auto began = std::chrono::steady_clock::now();
  KernelPlan plan(bench.memory);
  add_probes(bench.precisions, plan);
  const std::size_t probes = plan.kernels().size();
  for (const TimedKernel& kernel : request.shapes) plan.add(kernel);
  for (const Scenario& scenario : request.scenarios) add_scenario(scenario, plan);
  const std::size_t requested = plan.kernels().size();
  add_grids(request.all_grids ? bench.precisions : bench.grids, plan);
  add_memory_bound(bench.precisions, plan);
  add_presets(bench.precisions, bench.sequence, part_of_planning * budget, plan);

  const auto part = [&](std::size_t first, std::size_t last) {
    return std::vector<TimedKernel>(plan.kernels().begin() + static_cast<std::ptrdiff_t>(first),
                                    plan.kernels().begin() + static_cast<std::ptrdiff_t>(last));
  };
  const Seconds planning = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return measure(bench, {part(0, probes), part(probes, requested), part(requested, plan.kernels().size())},
                 std::max(budget - planning, budget / 2), request.told);
}

}  // namespace

std::optional<Calibration> calibrate(const Launch& launch, const CalibrationRequest& request) {
  refuse_launch_on_host(launch, request.backend);
  const Seconds of_collectives = part_of_collectives * request.budget;
  std::optional<Measured> measured = measured_collectives(launch, of_collectives, request);
  if (!measured) return std::nullopt;
  const Seconds of_kernels = measured->collectives.empty() ? request.budget : request.budget - of_collectives;
  Calibration calibration = measure_kernels(measured->bench, request, of_kernels);
  if (calibration.profile.kernels.empty()) throw std::runtime_error("nothing could be measured; " + calibration.first_failure);
  add_collectives(measured->collectives, calibration);
  return calibration;
}

}  // namespace tandem::studies
