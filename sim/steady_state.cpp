#include "sim/steady_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "sim/host_issue.h"

namespace tandem::sim {
namespace {

constexpr double tolerance = 1e-10;  ///< of the step, for what all periods that are left out may add up to

/// When the first stage begins with the forward of each micro-batch, in its first chunk.
std::vector<Seconds> entries(const Dag& dag, const Timeline& timeline) {
  const auto first_stage = std::ranges::find(dag.ranks, 0, &Rank::pp);
  if (first_stage == dag.ranks.end()) return {};
  const auto rank = static_cast<RankIndex>(first_stage - dag.ranks.begin());
  std::set<std::int32_t> entered;
  std::vector<Seconds> dates;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != rank || task.stream != Stream::compute || task.phase != Phase::forward || task.chunk > 0) continue;
    if (task.micro_batch >= 0 && entered.insert(task.micro_batch).second) dates.push_back(timeline.start[id]);
  }
  std::ranges::sort(dates);
  return dates;
}

/// The latest start before each date, or the step's beginning.
template <std::size_t count>
std::array<Seconds, count> latest_starts_before(const Timeline& timeline, const std::array<Seconds, count>& dates,
                                                Seconds within) {
  std::array<Seconds, count> latest{};
  for (const Seconds start : timeline.start)
    for (std::size_t i = 0; i < count; ++i)
      if (start < dates[i] - within) latest[i] = std::max(latest[i], start);
  return latest;
}

/// Tasks that start in each of three stretches, rank by rank in their order.
using Started = std::array<std::vector<TaskId>, 3>;

bool are_alike(const Dag& dag, TaskId a, TaskId b) {
  const Task &one = dag.tasks[a], &other = dag.tasks[b];
  const auto bytes = [&](const Task& task) { return task.group == no_id ? 0 : dag.groups[task.group].bytes; };
  return one.op == other.op && one.phase == other.phase && one.axis == other.axis && one.stream == other.stream &&
         one.rank == other.rank && one.layer == other.layer && one.chunk == other.chunk && one.name == other.name &&
         bytes(one) == bytes(other);
}

/// Nothing where something that began before them all runs on in the second.
std::optional<Started> started_between(const Timeline& timeline, const std::array<Seconds, 4>& at) {
  Started started;
  for (TaskId id = 0; id < timeline.start.size(); ++id) {
    const Seconds start = timeline.start[id];
    if (start < at[0] && timeline.end[id] > at[1]) return {};
    if (start < at[0] || start >= at[3]) continue;
    started[start < at[1] ? 0 : start < at[2] ? 1 : 2].push_back(id);
  }
  return started;
}

/// Whether the stretches, so long, have the same tasks at the same times, to within `each`, and no rank is idle in them: its wait
/// would be longer in the step.
bool are_repeated(const Dag& dag, const Timeline& timeline, const Started& started, Seconds length, Seconds each) {
  if (started[0].size() != started[1].size() || started[1].size() != started[2].size()) return false;
  std::vector<bool> computes(dag.ranks.size(), false);
  for (std::size_t i = 0; i < started[0].size(); ++i) {
    for (std::size_t p = 0; p < 2; ++p) {
      const TaskId a = started[p][i], b = started[p + 1][i];
      if (!are_alike(dag, a, b) || std::abs(timeline.start[b] - timeline.start[a] - length) > each ||
          std::abs(timeline.end[b] - timeline.end[a] - length) > each)
        return false;
    }
    const Task& task = dag.tasks[started[2][i]];
    if (task.stream == Stream::compute) computes[task.rank] = true;
  }
  return std::ranges::find(computes, false) == computes.end();
}

/// When the CPU has issued each task, given when tasks ended.
HostIssue issued_during(const Dag& dag, const Timeline& timeline) {
  HostIssue host(dag);
  std::vector<TaskId> units;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.unit_of(id).front() == id) units.push_back(id);
  std::ranges::stable_sort(units, {}, [&](TaskId id) { return timeline.end[id]; });
  for (const TaskId id : units) host.ended(id, timeline.end[id]);
  return host;
}

/// Whether the CPU of each rank goes on after any number of stretches as after those that are there: it is where it was, or
/// further ahead, and nothing has waited for it since.
bool cpus_go_on(const Dag& dag, const Timeline& timeline, const Started& started, Seconds from, Seconds length, Seconds each) {
  const HostIssue host = issued_during(dag, timeline);
  std::vector<bool> gains(dag.ranks.size(), false);
  for (std::size_t i = 0; i < started[1].size(); ++i) {
    const Seconds later = host.issued(started[2][i]) - host.issued(started[1][i]) - length;
    if (later > each) return false;
    if (later < -each) gains[dag.tasks[started[1][i]].rank] = true;
  }
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (gains[dag.tasks[id].rank] && timeline.start[id] >= from && host.issued(id) >= timeline.start[id]) return false;
  return true;
}

/// Looks at the last three stretches of so many periods.
std::optional<Repeat> find_repeat_of(const Dag& dag, const Timeline& timeline, const std::vector<Seconds>& entry,
                                     const Periods& periods, std::int64_t in_stretch) {
  const std::int64_t times = periods.left_out / in_stretch;
  const auto period = static_cast<std::size_t>(periods.micro_batches), stretch = period * static_cast<std::size_t>(in_stretch);
  constexpr std::size_t dates = 4;
  if (entry.size() < (dates - 1) * stretch + 2 * period) return {};
  // In the last period the last micro-batches of the step begin, after which all is different.
  std::array<Seconds, dates> at{};
  for (std::size_t i = 0; i < dates; ++i) at[i] = entry[entry.size() - period - (dates - 1 - i) * stretch];
  const Seconds each = tolerance * timeline.makespan() / static_cast<double>(times);
  const Seconds length = at[3] - at[2];
  if (std::abs(at[2] - at[1] - length) > each || std::abs(at[1] - at[0] - length) > each) return {};
  // What starts with the first stage belongs to the stretch that begins there, as exactly as dates are.
  const auto before = latest_starts_before(timeline, at, each);
  Seconds margin = length;
  for (std::size_t i = 0; i < dates; ++i) margin = std::min(margin, (at[i] - before[i]) / 2);
  for (Seconds& date : at) date -= margin;

  const std::optional<Started> started = started_between(timeline, at);
  if (!started || !are_repeated(dag, timeline, *started, length, each)) return {};
  if (!issues_for_free(dag) && !cpus_go_on(dag, timeline, *started, at[2], length, each)) return {};
  return Repeat{.from = at[2],
                .to = at[3],
                .times = times,
                .micro_batches = periods.micro_batches * static_cast<std::int32_t>(in_stretch),
                .before = at[1],
                .second_half_from = periods.second_half_from};
}

}  // namespace

std::optional<Repeat> find_repeat(const Dag& dag, const Timeline& timeline, const Periods& periods) {
  const std::vector<Seconds> entry = entries(dag, timeline);
  for (std::int64_t in_stretch = 1; in_stretch <= most_periods_in_stretch; ++in_stretch) {
    if (periods.left_out % in_stretch != 0) continue;
    if (auto repeat = find_repeat_of(dag, timeline, entry, periods, in_stretch)) return repeat;
  }
  return {};
}

}  // namespace tandem::sim
