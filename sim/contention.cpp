#include "sim/contention.h"

#include <algorithm>

namespace tandem::sim {

double slowdown(const KernelTime& kernel, const Device& device, const Occupation& occupation) {
  if (!(kernel.total > 0)) return 1;
  const auto all = static_cast<double>(device.multiprocessors);
  const double left = std::max(1.0, all - occupation.multiprocessors);
  const BytesPerSecond achieved = device.efficiency.memory * device.memory_bandwidth;
  const BytesPerSecond taken = std::min(occupation.memory, achieved / 2);
  const Seconds computing = kernel.computing * all / left;
  const Seconds moving = taken > 0 ? kernel.moving * achieved / (achieved - taken) : kernel.moving;
  return (kernel.launch + std::max(computing, moving)) / kernel.total;
}

double slowdown_beside(const Dag& dag, const KernelTimes& times, TaskId task, const Occupation& taken) {
  const Device& device = dag.device_of(dag.tasks[task]);
  if (device.multiprocessors == 0 || dag.tasks[task].stream == Stream::host) return 1;
  Occupation most = taken;
  if (operation(dag.tasks[task].op).op_class == OpClass::gemm)
    most.multiprocessors = std::max(most.multiprocessors, dag.software.gemm_sm_margin);
  if (most.multiprocessors == 0 && most.memory == 0) return 1;
  return slowdown(times.parts_of(task), device, most);
}

Contention::Contention(const Dag& dag, const KernelTimes& times, std::function<void(TaskId, Seconds)> redated)
    : dag_(dag), times_(times), redated_(std::move(redated)), ranks_(dag.ranks.size()) {
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank)
    ranks_[rank].is_contended = dag.devices[dag.ranks[rank].device].multiprocessors > 0;
}

Seconds Contention::begin_kernel(TaskId task, Seconds alone, Seconds now) {
  OnRank& rank = ranks_[dag_.tasks[task].rank];
  if (!rank.is_contended || is_on_host(task)) return now + alone;
  const double slowed = slowdown_beside(dag_, times_, task, rank.taken);
  rank.kernels.push_back({task, now, now + alone * slowed, slowed});
  return rank.kernels.back().end;
}

bool Contention::end_kernel(TaskId task, Seconds date) {
  OnRank& rank = ranks_[dag_.tasks[task].rank];
  if (!rank.is_contended || is_on_host(task)) return true;
  const auto found = std::ranges::find(rank.kernels, task, &Kernel::task);
  if (found == rank.kernels.end() || found->end != date) return false;
  rank.kernels.erase(found);
  return true;
}

void Contention::begin_communication(std::span<const TaskId> unit, const Occupation& occupation, Seconds now) {
  for (const TaskId task : unit) {
    OnRank& rank = ranks_[dag_.tasks[task].rank];
    if (!rank.is_contended) continue;
    rank.communications.push_back({task, occupation});
    redate(rank, now);
  }
}

void Contention::end_communication(std::span<const TaskId> unit, Seconds now) {
  for (const TaskId task : unit) {
    OnRank& rank = ranks_[dag_.tasks[task].rank];
    if (!rank.is_contended) continue;
    rank.communications.erase(std::ranges::find(rank.communications, task, &Communication::task));
    redate(rank, now);
  }
}

void Contention::redate(OnRank& rank, Seconds now) {
  // Summed up anew, so that nothing is left of what has ended.
  rank.taken = {};
  for (const Communication& communication : rank.communications) {
    rank.taken.multiprocessors += communication.occupation.multiprocessors;
    rank.taken.memory += communication.occupation.memory;
  }
  for (Kernel& kernel : rank.kernels) {
    const double slowed = slowdown_beside(dag_, times_, kernel.task, rank.taken);
    const Seconds from = std::max(now, kernel.start);
    if (slowed == kernel.slowdown || kernel.end <= from) continue;
    kernel.end = from + (kernel.end - from) * (slowed / kernel.slowdown);
    kernel.slowdown = slowed;
    redated_(kernel.task, kernel.end);
  }
}

}  // namespace tandem::sim
