#include "sim/contention.h"

#include <algorithm>
#include <utility>

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

Seconds Contention::begin_run(std::span<const Turn> turns) {
  OnRank& rank = ranks_[dag_.tasks[turns.front().task].rank];
  if (unused_.empty()) unused_.emplace_back();
  Run& run = rank.runs.emplace_back(std::move(unused_.back()));
  unused_.pop_back();
  run.turns.assign(turns.begin(), turns.end());
  run.ended = 0;
  date(rank, run, 0);
  return run.turns.back().end;
}

std::span<const Turn> Contention::end_run(TaskId last, Seconds date) {
  std::vector<Run>& runs = ranks_[dag_.tasks[last].rank].runs;
  const auto found = std::ranges::find(runs, last, [](const Run& run) { return run.turns.back().task; });
  if (found == runs.end() || found->turns.back().end != date) return {};
  unused_.push_back(std::move(*found));
  runs.erase(found);
  return unused_.back().turns;
}

void Contention::date(const OnRank& rank, Run& run, std::size_t from) const {
  for (std::size_t i = from; i < run.turns.size(); ++i) {
    Turn& turn = run.turns[i];
    turn.start = i == 0 ? turn.not_before : std::max(run.turns[i - 1].end, turn.not_before);
    turn.slowdown = rank.is_contended ? slowdown_beside(dag_, times_, turn.task, rank.taken) : 1;
    turn.end = turn.start + turn.alone * turn.slowdown;
  }
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
  const Occupation before = std::exchange(rank.taken, {});
  for (const Communication& communication : rank.communications) {
    rank.taken.multiprocessors += communication.occupation.multiprocessors;
    rank.taken.memory += communication.occupation.memory;
  }
  if (rank.taken == before) return;
  for (Run& run : rank.runs) {
    while (run.ended < run.turns.size() && run.turns[run.ended].end <= now) ++run.ended;
    if (run.ended == run.turns.size()) continue;
    const Seconds end = run.turns.back().end;
    Turn& current = run.turns[run.ended];
    const bool has_begun = current.start < now;
    if (has_begun) {
      const double slowed = slowdown_beside(dag_, times_, current.task, rank.taken);
      if (slowed != current.slowdown) current.end = now + (current.end - now) * (slowed / current.slowdown);
      current.slowdown = slowed;
    }
    date(rank, run, has_begun ? run.ended + 1 : run.ended);
    if (run.turns.back().end != end) redated_(run.turns.back().task, run.turns.back().end);
  }
}

}  // namespace tandem::sim
