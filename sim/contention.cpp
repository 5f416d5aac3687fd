#include "sim/contention.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "runtime/base/hash.h"

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

Slowdowns::Slowdowns(const Dag& dag, const KernelTimes& times)
    : dag_(dag), times_(times), known_(places * dag.first_of_kernel.size()) {}

std::size_t Slowdowns::place_of(const Occupation& taken) {
  return hash(std::bit_cast<std::uint64_t>(taken.memory) ^ static_cast<std::uint64_t>(taken.multiprocessors)) % places;
}

double Slowdowns::of(TaskId task, const Occupation& taken, std::size_t place) {
  Known& known = known_[place * dag_.first_of_kernel.size() + dag_.tasks[task].kernel];
  if (known.slowdown == 0 || known.taken != taken) known = {taken, slowdown_beside(dag_, times_, task, taken)};
  return known.slowdown;
}

namespace {

std::vector<Seconds> times_alone(const Dag& dag, const KernelTimes& times, const auto& factor_of) {
  std::vector<Seconds> alone;
  alone.reserve(dag.first_of_kernel.size());
  for (const TaskId first : dag.first_of_kernel) alone.push_back(times.of(first) / factor_of(dag.tasks[first]));
  return alone;
}

}  // namespace

Contention::Contention(const Dag& dag, const KernelTimes& times, const Speedup& speedup,
                       std::function<void(TaskId, Seconds)> redated)
    : dag_(dag), redated_(std::move(redated)), ranks_(dag.ranks.size()), slowdowns_(dag, times) {
  alone_ = times_alone(dag, times, [&](const Task& task) { return speedup.of_operation(task.op); });
  for (RankIndex rank = 0; rank < ranks_.size(); ++rank) {
    const double of_stage = speedup.of_stage(dag.ranks[rank].pp);
    if (of_stage != 1 && alone_on_stage_.empty())
      alone_on_stage_ = times_alone(dag, times, [&](const Task&) { return of_stage; });
    ranks_[rank].alone = of_stage != 1 ? &alone_on_stage_ : &alone_;
    ranks_[rank].is_contended = dag.devices[dag.ranks[rank].device].multiprocessors > 0;
  }
}

Seconds Contention::begin_run(const KernelRun& run, Seconds now) {
  OnRank& rank = ranks_[dag_.tasks[run.first].rank];
  if (unused_.empty()) unused_.emplace_back();
  Running& running = rank.runs.emplace_back(std::move(unused_.back()));
  unused_.pop_back();
  running.run = run;
  running.starts.resize(run.last - run.first + 1);
  running.ends.resize(running.starts.size());
  running.ended = 0;
  date(rank, running, 0, now);
  return running.ends.back();
}

Contention::Dates Contention::end_run(TaskId last) {
  std::vector<Running>& runs = ranks_[dag_.tasks[last].rank].runs;
  const auto found = std::ranges::find(runs, last, [](const Running& running) { return running.run.last; });
  unused_.push_back(std::move(*found));
  runs.erase(found);
  return {unused_.back().starts, unused_.back().ends};
}

double Contention::slowdown_of(const OnRank& rank, TaskId kernel) {
  return rank.is_contended ? slowdowns_.of(kernel, rank.taken, rank.place) : 1;
}

void Contention::date(const OnRank& rank, Running& running, std::size_t from, Seconds now) {
  const auto& [first, last, not_before, factor] = running.run;
  const std::vector<Seconds>& alone = *rank.alone;
  Seconds end = from == 0 ? now : running.ends[from - 1];
  for (std::size_t i = from; i < running.ends.size(); ++i) {
    const TaskId id = first + static_cast<TaskId>(i);
    const Seconds start = not_before.empty() ? end : std::max(end, not_before[i]);
    end = start + alone[dag_.tasks[id].kernel] * factor * slowdown_of(rank, id);
    running.starts[i] = start;
    running.ends[i] = end;
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
  const std::size_t place_before = rank.place;
  for (const Communication& communication : rank.communications) {
    rank.taken.multiprocessors += communication.occupation.multiprocessors;
    rank.taken.memory += communication.occupation.memory;
  }
  if (rank.taken == before) return;
  rank.place = Slowdowns::place_of(rank.taken);
  for (Running& running : rank.runs) {
    std::vector<Seconds>& ends = running.ends;
    while (running.ended < ends.size() && ends[running.ended] <= now) ++running.ended;
    if (running.ended == ends.size()) continue;
    const Seconds last_end = ends.back();
    const std::size_t current = running.ended;
    const bool has_begun = running.starts[current] < now;
    if (has_begun) {
      const TaskId kernel = running.run.first + static_cast<TaskId>(current);
      const double was = slowdowns_.of(kernel, before, place_before), is = slowdown_of(rank, kernel);
      if (is != was) ends[current] = now + (ends[current] - now) * (is / was);
    }
    date(rank, running, has_begun ? current + 1 : current, now);
    if (ends.back() != last_end) redated_(running.run.last, ends.back());
  }
}

}  // namespace tandem::sim
