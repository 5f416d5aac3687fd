#include "cli/run/processes.h"

#include <algorithm>
#include <array>
#include <boost/crc.hpp>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/gpu.h"
#include "runtime/executor.h"
#include "runtime/host/loss.h"
#include "runtime/launch/control_plane.h"

namespace tandem {
namespace {

std::vector<TaskId> tasks_of(const Dag& dag, RankIndex rank) {
  std::vector<TaskId> tasks;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].rank == rank) tasks.push_back(id);
  return tasks;
}

void append(double number, std::string& bytes) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); }

double number_at(const std::string& bytes, std::size_t place) {
  double number = 0;
  std::memcpy(&number, bytes.data() + place * sizeof number, sizeof number);
  return number;
}

double loss_on(GpuStep& step, const Dag& dag, RankIndex rank) {
  const auto wanted = [&](const Buffer& buffer) { return buffer.rank == rank && buffer.shape.elements() == 1; };
  HostMemory numbers(dag, wanted);
  for (BufferId id = 0; id < dag.buffers.size(); ++id)
    if (dag.buffers[id].base == id && wanted(dag.buffers[id])) step.read(id, numbers.tensor(id));
  return loss_share(numbers, rank);
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

std::string own_measurement(const Dag& dag, RankIndex rank, const Timeline& timeline, double loss_share) {
  std::string bytes;
  append(loss_share, bytes);
  for (const TaskId id : tasks_of(dag, rank)) {
    append(timeline.start[id], bytes);
    append(timeline.end[id], bytes);
  }
  return bytes;
}

MeasuredStep merged(const Dag& dag, const std::vector<std::string>& measurements) {
  MeasuredStep step;
  step.timeline.start.assign(dag.tasks.size(), 0);
  step.timeline.end.assign(dag.tasks.size(), 0);
  for (RankIndex rank = 0; rank < measurements.size(); ++rank) {
    const std::vector<TaskId> tasks = tasks_of(dag, rank);
    if (measurements[rank].size() != (1 + 2 * tasks.size()) * sizeof(double))
      throw std::runtime_error("rank " + std::to_string(rank) + " sent other measurements than its tasks'");
    step.loss += number_at(measurements[rank], 0) / dag.info.steps;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      step.timeline.start[tasks[i]] = number_at(measurements[rank], 1 + 2 * i);
      step.timeline.end[tasks[i]] = number_at(measurements[rank], 2 + 2 * i);
    }
  }
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

std::optional<MeasuredStep> execute_with_others(const Launch& launch, const Dag& dag, const std::string& digest, bool graph) {
  if (launch.size != dag.ranks.size())
    throw std::runtime_error(std::to_string(launch.size) + " processes were launched, expected " +
                             std::to_string(dag.ranks.size()) + ", one for each rank of the step");
  const auto name = [&](std::uint32_t task) { return std::string(dag.name_of_task(task)); };
  ControlPlane control(launch, {.task_name = name});
  std::optional<MeasuredStep> result;
  control.run([&] {
    control.agree("DAG file", digest);
    const std::unique_ptr<Gpu> gpu = open_gpu(static_cast<int>(launch.local_rank));
    const std::unique_ptr<GpuStep> step = gpu->make_step(dag, {.control = &control, .launch = &launch, .graph = graph});
    const std::size_t collectives = step->verify_collectives();
    Timeline timeline;
    constexpr int warm_up_and_measure = 2;
    for (int run = 0; run < warm_up_and_measure; ++run) {
      step->fill(data_seed);
      control.barrier();
      timeline = execute(dag, *step);
    }
    const std::vector<std::string> all =
        control.gather(own_measurement(dag, launch.rank, timeline, loss_on(*step, dag, launch.rank)));
    if (launch.rank != 0) return;
    result = merged(dag, all);
    result->collectives = collectives;
    const GpuInfo info = gpu->info();
    result->description = "cuda, " + std::to_string(launch.size) + " x " + info.name + ", " + info.versions;
  });
  return result;
}

}  // namespace tandem
