#include "traces/spans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "traces/representative_ranks.h"

namespace tandem::traces {
namespace {

constexpr double ns_per_second = 1e9;

std::int64_t in_ns(Seconds time) { return std::llround(time * ns_per_second); }

/// Sorts the tasks by rank and stream, keeping the order of each stream, which is the order it ran them in.
void lay_out_tracks(const Dag& dag, const std::vector<TracedRank>& ranks, SourceSpans& out) {
  std::vector<bool> written(dag.ranks.size(), false);
  for (const TracedRank& traced : ranks) written.at(traced.rank) = true;
  const auto slot_of = [](const Task& task) { return task.rank * stream_count + static_cast<std::size_t>(task.stream); };

  std::vector<std::uint32_t> place(dag.ranks.size() * stream_count, 0);  // first how many spans, then where the next one goes
  for (const Task& task : dag.tasks) place.at(slot_of(task)) += written[task.rank] ? 1 : 0;

  std::vector<std::uint32_t> track_of(place.size(), 0);
  std::uint32_t total = 0;
  for (std::size_t slot = 0; slot < place.size(); ++slot) {
    const std::uint32_t count = place[slot];
    place[slot] = total;
    if (count == 0) continue;
    track_of[slot] = static_cast<std::uint32_t>(out.tracks.size());
    const auto rank = static_cast<RankIndex>(slot / stream_count);
    if (out.ranks.empty() || out.ranks.back().rank != rank) out.ranks.push_back({rank, track_of[slot], 0});
    ++out.ranks.back().track_count;
    out.tracks.push_back({rank, static_cast<Stream>(slot % stream_count), total, count});
    total += count;
  }

  out.spans.resize(total);
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (!written[task.rank]) continue;
    Span& span = out.spans[place[slot_of(task)]++];
    span.task = id;
    span.track = track_of[slot_of(task)];
  }
}

/// Rounding keeps order, so neighbours that met still meet; the maxima keep a measured clock's small overlaps off the track.
void round_times(const Timeline& timeline, SourceSpans& out) {
  for (const Track& track : out.tracks) {
    std::int64_t previous_end = 0;
    for (std::uint32_t i = track.first_span; i < track.first_span + track.span_count; ++i) {
      Span& span = out.spans[i];
      span.start_ns = std::max(in_ns(timeline.start[span.task]), previous_end);
      span.end_ns = std::max(in_ns(timeline.end[span.task]), span.start_ns);
      previous_end = span.end_ns;
    }
  }
}

/// Returns the source first, then the others by the order of their ends. Returns nothing unless time passes from the source's
/// start to every other end: a viewer that reads events in time order must see the flow leave before it arrives.
std::vector<std::uint32_t> flow_order(const Dag& dag, const std::vector<Span>& spans, std::vector<std::uint32_t> members) {
  if (members.size() < 2) return {};
  const auto leaves_before = [&](std::uint32_t a, std::uint32_t b) {
    const bool a_receives = dag.tasks[spans[a].task].op == OpKind::receive;
    const bool b_receives = dag.tasks[spans[b].task].op == OpKind::receive;
    return std::tie(a_receives, spans[a].start_ns, a) < std::tie(b_receives, spans[b].start_ns, b);
  };
  const auto ends_before = [&](std::uint32_t a, std::uint32_t b) {
    return std::tie(spans[a].end_ns, a) < std::tie(spans[b].end_ns, b);
  };
  std::iter_swap(members.begin(), std::min_element(members.begin(), members.end(), leaves_before));
  std::sort(members.begin() + 1, members.end(), ends_before);
  if (spans[members[1]].end_ns <= spans[members[0]].start_ns) return {};
  return members;
}

void join_groups(const Dag& dag, SourceSpans& out) {
  constexpr std::uint32_t not_written = no_id;
  std::vector<std::uint32_t> span_of(dag.tasks.size(), not_written);
  for (std::uint32_t i = 0; i < out.spans.size(); ++i) span_of[out.spans[i].task] = i;

  std::vector<std::uint32_t> members;
  for (GroupId group = 0; group < dag.groups.size(); ++group) {
    members.clear();
    for (const TaskId task : dag.members_of(group)) {
      if (span_of[task] != not_written) members.push_back(span_of[task]);
    }
    std::vector<std::uint32_t> order = flow_order(dag, out.spans, members);
    if (order.empty()) continue;
    for (const std::uint32_t span : order) out.spans[span].flow = FlowRole::step;
    out.spans[order.front()].flow = FlowRole::source;
    out.spans[order.back()].flow = FlowRole::last;
    out.flows.push_back({group, std::move(order)});
  }
}

std::int32_t last_world_rank(const Dag& dag) {
  std::uint32_t last = 0;
  for (const Rank& rank : dag.ranks) last = std::max(last, rank.world_rank);
  return static_cast<std::int32_t>(last);
}

/// Names the mesh coordinates of the axes that the DAG uses, how many ranks of the world a representative stands for, and which
/// of them were asked for.
std::vector<std::string> process_names_of(const Dag& dag, const std::vector<TracedRank>& ranks, const std::string& prefix) {
  constexpr std::array<std::pair<Axis, std::int32_t Rank::*>, 5> coordinates{
      {{Axis::tp, &Rank::tp}, {Axis::cp, &Rank::cp}, {Axis::ep, &Rank::ep}, {Axis::pp, &Rank::pp}, {Axis::dp, &Rank::dp}}};
  std::vector<std::string> names;
  for (const Rank& rank : dag.ranks) names.push_back(prefix + "rank " + std::to_string(rank.world_rank));
  for (const auto& [axis, coordinate] : coordinates) {
    const bool used = std::any_of(dag.ranks.begin(), dag.ranks.end(), [&](const Rank& rank) { return rank.*coordinate != 0; }) ||
                      std::any_of(dag.communicators.begin(), dag.communicators.end(),
                                  [&](const Communicator& communicator) { return communicator.axis == axis; });
    for (std::size_t i = 0; used && i < names.size(); ++i) {
      names[i] += " · " + std::string(name_of(axis)) + " " + std::to_string(dag.ranks[i].*coordinate);
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (dag.ranks[i].count > 1) names[i] += " ×" + std::to_string(dag.ranks[i].count);
  }
  for (const TracedRank& traced : ranks) {
    if (traced.asked.empty() || traced.asked == std::vector{dag.ranks[traced.rank].world_rank}) continue;
    names[traced.rank] += " (among them " + rank_list(traced.asked) + ")";
  }
  return names;
}

}  // namespace

std::vector<CounterPoint> points_of(const TraceCounter& counter) {
  std::vector<CounterPoint> points;
  for (std::size_t i = 0; i < counter.times.size(); ++i) {
    const CounterPoint point{in_ns(counter.times[i]), counter.values[i]};
    if (!points.empty() && points.back().time_ns == point.time_ns) points.pop_back();
    if (points.empty() || points.back().value != point.value) points.push_back(point);
  }
  return points;
}

std::string rank_list(std::span<const std::uint32_t> ranks) {
  std::string list;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    list += (first > 0 ? ", " : "") + std::to_string(ranks[first]);
    if (last > first) list += '-' + std::to_string(ranks[last]);
    first = last + 1;
  }
  return list;
}

std::vector<SourceSpans> spans_of(const std::vector<TraceSource>& sources) {
  if (sources.empty()) throw std::logic_error("a trace needs a timeline");
  std::vector<SourceSpans> all;
  std::int32_t next_pid = 1;
  std::uint64_t next_flow = 1;
  for (const TraceSource& source : sources) {
    const Dag& dag = *source.dag;
    if (source.timeline->start.size() != dag.tasks.size() || source.timeline->end.size() != dag.tasks.size()) {
      throw std::logic_error("the '" + source.title + "' timeline has another number of tasks than its DAG");
    }
    const std::vector<TracedRank> ranks = source.ranks.empty() ? representative_ranks(dag, *source.timeline) : source.ranks;
    const std::string prefix = sources.size() > 1 ? source.title + " · " : "";
    SourceSpans& spans = all.emplace_back();
    spans.first_pid = next_pid;
    spans.first_flow = next_flow;
    lay_out_tracks(dag, ranks, spans);
    round_times(*source.timeline, spans);
    join_groups(dag, spans);
    spans.process_names = process_names_of(dag, ranks, prefix);
    next_pid += last_world_rank(dag) + 1;
    if (std::ranges::any_of(source.counters, [](const TraceCounter& counter) { return !counter.rank; })) {
      spans.cluster_name = prefix + "cluster";
      spans.cluster_pid = next_pid++;
    }
    next_flow += dag.groups.size();
  }
  return all;
}

}  // namespace tandem::traces
