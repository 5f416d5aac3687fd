#include "tests/end_to_end/step_parts.h"

#include <algorithm>
#include <limits>

namespace tandem::studies {
namespace {

struct PassSpan {
  Seconds start = std::numeric_limits<Seconds>::infinity(), end = 0;
  void add(Seconds from, Seconds to) {
    start = std::min(start, from);
    end = std::max(end, to);
  }
  Seconds length() const { return end - start; }
};

using Spans = std::map<std::int32_t, PassSpan>;  ///< by micro-batch, or layer

bool is_of_pass(const Task& task) {
  return task.stream == Stream::compute && task.phase != Phase::optimizer && task.micro_batch >= 0;
}

std::string part_of_pair(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  switch (task.op) {
    case OpKind::all_to_all: {
      const bool sends_to_experts = (dag.name_of_task(id) == "dispatch") == (task.phase == Phase::forward);
      return sends_to_experts ? "dispatch" : "combine";
    }
    case OpKind::gemm:
    case OpKind::grouped_gemm:
      return "products";
    case OpKind::attention:
      return "attention forward";
    case OpKind::attention_backward:
      return "attention backward";
    default:
      return "other kernels";
  }
}

}  // namespace

PartTimes phases_of_step(const Dag& dag, const Timeline& timeline) {
  Spans forward, backward, weights;
  Seconds last = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != 0 || !is_of_pass(task)) continue;
    Spans& spans = task.phase == Phase::forward ? forward : task.phase == Phase::backward_weight ? weights : backward;
    spans[task.micro_batch].add(timeline.start[id], timeline.end[id]);
    last = std::max(last, timeline.end[id]);
  }
  PartTimes parts{{"forwards alone", 0}, {"pairs", 0}, {"backwards alone", 0}, {"weight gradients alone", 0}};
  for (const auto& [micro_batch, span] : weights) {  // put off, or within their backward
    PassSpan& own = backward.at(micro_batch);
    if (span.start < own.end)
      own.add(span.start, span.end);
    else
      parts["weight gradients alone"] += span.length();
  }
  for (const auto& [micro_batch, span] : forward) {
    const auto beside = std::ranges::find_if(
        backward, [&](const auto& other) { return other.second.start < span.end && span.start < other.second.end; });
    if (beside == backward.end()) {
      parts["forwards alone"] += span.length();
      continue;
    }
    PassSpan both = span;
    both.add(beside->second.start, beside->second.end);
    parts["pairs"] += both.length();
    backward.erase(beside);
  }
  for (const auto& [micro_batch, span] : backward) parts["backwards alone"] += span.length();
  Seconds passes = 0;
  for (const auto& [name, time] : parts) passes += time;
  parts["bubble"] = last - passes;
  parts["optimizer"] = timeline.makespan() - last;
  parts["step"] = timeline.makespan();
  return parts;
}

PartTimes kernels_of_pair(const Dag& dag, const Timeline& timeline) {
  constexpr std::int32_t stage = 4;
  const auto belongs = [&](const Task& task) {
    return dag.ranks[task.rank].pp == stage && task.micro_batch >= 0 && task.phase != Phase::optimizer;
  };
  Spans forward, backward;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!belongs(task) || !is_of_pass(task) || task.phase == Phase::backward_weight) continue;
    (task.phase == Phase::forward ? forward : backward)[task.micro_batch].add(timeline.start[id], timeline.end[id]);
  }
  const std::int32_t with_forward = dag.info.micro_batches / 4;
  const PassSpan& span = forward.at(with_forward);
  const auto beside = std::ranges::max_element(backward, {}, [&](const auto& other) {
    return std::min(other.second.end, span.end) - std::max(other.second.start, span.start);
  });
  PartTimes parts{{"notifying", 0}};
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const bool is_exchange = task.op == OpKind::all_to_all;
    if (!belongs(task) || (task.stream != Stream::compute && !is_exchange)) continue;
    if (task.micro_batch != (task.phase == Phase::forward ? with_forward : beside->first)) continue;
    parts[part_of_pair(dag, id)] += timeline.duration(id);
    parts[is_exchange ? "exchanges" : "all kernels"] += timeline.duration(id);
  }
  return parts;
}

PartTimes passes_of_layer(const Dag& dag, const Timeline& timeline) {
  Spans forward, backward;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != 0 || !is_of_pass(task) || task.micro_batch != 0 || task.layer < 0) continue;
    (task.phase == Phase::forward ? forward : backward)[task.layer].add(timeline.start[id], timeline.end[id]);
  }
  const std::int32_t first = forward.begin()->first, last = forward.rbegin()->first;
  const double layers = last - first - 1;
  PartTimes parts{{"forward", (forward.at(last).start - forward.at(first + 1).start) / layers},
                  {"backward", (backward.at(first).start - backward.at(last - 1).start) / layers}};
  parts["both"] = parts["forward"] + parts["backward"];
  return parts;
}

}  // namespace tandem::studies
