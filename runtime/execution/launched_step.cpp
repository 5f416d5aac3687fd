#include "runtime/execution/launched_step.h"

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "runtime/contents/initial_values.h"
#include "runtime/execution/execution_site.h"
#include "runtime/execution/measured_runs.h"
#include "runtime/execution/read_buffers.h"
#include "runtime/execution/stored_types.h"
#include "runtime/executor.h"
#include "runtime/host/loss.h"
#include "runtime/launch/control_plane.h"
#include "runtime/launch/rank_times.h"

namespace tandem {
namespace {

double loss_on(GpuStep& step, const Dag& dag, RankIndex rank) {
  const auto is_number = [&](const Buffer& buffer) { return buffer.rank == rank && buffer.shape.elements() == 1; };
  return loss_share(read_buffers(step, dag, is_number), rank);
}

}  // namespace

std::string digest_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  boost::crc_32_type crc;
  std::size_t size = 0;
  std::array<char, 1 << 16> block;
  do {
    file.read(block.data(), block.size());
    crc.process_bytes(block.data(), static_cast<std::size_t>(file.gcount()));
    size += static_cast<std::size_t>(file.gcount());
  } while (file);
  if (!file.eof()) throw std::runtime_error(path + ": cannot be read");
  return std::to_string(size) + " bytes, CRC " + std::to_string(crc.checksum());
}

std::string own_measurement(const Dag& dag, RankIndex rank, const Timeline& timeline, const OwnNumbers& numbers) {
  return std::string(reinterpret_cast<const char*>(&numbers), sizeof numbers) + own_times(dag, rank, timeline);
}

LaunchedStep merged(const Dag& dag, const std::vector<std::string>& measurements) {
  LaunchedStep step;
  step.undated_step = 0;
  std::vector<std::string> times;
  for (const std::string& measurement : measurements) {
    OwnNumbers numbers;
    if (measurement.size() < sizeof numbers) throw std::runtime_error("a process sent no measurement");
    std::memcpy(&numbers, measurement.data(), sizeof numbers);
    step.loss += numbers.loss_share / dag.info.steps;
    step.undated_step = std::max(*step.undated_step, numbers.undated / dag.info.steps);
    times.push_back(measurement.substr(sizeof numbers));
  }
  step.timeline = times_of_all(dag, times);
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    Seconds start = 0, end = 0;
    for (const TaskId id : dag.members_of(group)) {
      start = std::max(start, step.timeline.start[id]);
      end = std::max(end, step.timeline.end[id]);
    }
    for (const TaskId id : dag.members_of(group)) {
      step.timeline.start[id] = start;
      step.timeline.end[id] = end;
    }
  }
  return step;
}

std::optional<LaunchedStep> execute_with_others(const Launch& launch, const Dag& lowered, const std::string& digest,
                                                GraphScope graphs) {
  const Dag dag = stored_on_gpus(lowered);
  if (launch.size != dag.ranks.size())
    throw std::runtime_error(std::to_string(launch.size) + " processes were launched, expected " +
                             std::to_string(dag.ranks.size()) + ", one for each rank of the step");
  const auto name = [&](std::uint32_t task) { return std::string(dag.name_of_task(task)); };
  ControlPlane control(launch, control_options(launch.limits, name));
  std::optional<LaunchedStep> result;
  control.run([&] {
    control.agree("DAG file", digest);
    const std::unique_ptr<Gpu> gpu = open_gpu(static_cast<int>(launch.local_rank));
    const std::unique_ptr<GpuStep> step = gpu->make_step(dag, {.control = &control, .launch = &launch, .graphs = graphs});
    const std::size_t collectives = step->verify_collectives();
    const MeasuredRuns runs = measure_runs(dag, *step, {.control = &control});
    const std::vector<std::string> all =
        control.gather(own_measurement(dag, launch.rank, runs.timeline, {loss_on(*step, dag, launch.rank), runs.undated}));
    if (launch.rank == 0) {
      result = merged(dag, all);
      result->collectives = collectives;
      const GpuInfo info = gpu->info();
      result->description = "cuda, " + std::to_string(launch.size) + " x " + info.name + ", " + info.versions + ", " +
                            text_of(step->graphs(), graphs);
    }
    step->close();
  });
  return result;
}

}  // namespace tandem
