#include "studies/trace/trace_output.h"

#include "runtime/analysis/memory_over_time.h"
#include "sim/bottleneck.h"
#include "sim/link_use.h"
#include "studies/trace/issue_dates.h"
#include "studies/trace/trace_ranks.h"
#include "traces/representative_ranks.h"

namespace tandem::studies {
namespace {

constexpr std::size_t most_memory_points = 10'000;  // of a rank
constexpr std::size_t link_use_bins = 500;

void count_memory(TraceSource& source) {
  std::vector<RankIndex> ranks;
  for (const TracedRank& traced : source.ranks) ranks.push_back(traced.rank);
  const MemoryDetail detail{.points = most_memory_points, .holders = 0};
  for (const MemoryOverTime& memory : memory_over_time(*source.dag, *source.timeline, ranks, detail)) {
    const Bytes throughout = memory.use.parameters + memory.use.gradients + memory.use.optimizer;
    TraceCounter& counter = source.counters.emplace_back(TraceCounter{"memory", "bytes", memory.use.rank});
    for (const MemoryPoint& point : memory.points) {
      counter.times.push_back(point.at);
      counter.values.push_back(static_cast<double>(throughout + point.bytes()));
    }
  }
}

/// Adds a counter for each tier: the mean over its links.
void count_link_use(TraceSource& source) {
  constexpr double percent = 100;
  const LinkUse use = link_use(*source.dag, *source.timeline, link_use_bins);
  for (const LinkUse::OfTier& tier : use.tiers) {
    TraceCounter& counter = source.counters.emplace_back(TraceCounter{std::string(name_of(tier.tier)) + " use", "%"});
    counter.times = use.edges;
    for (const double utilisation : tier.utilisation) counter.values.push_back(percent * utilisation);
    counter.values.push_back(0);  // after the step
  }
}

TraceSource source_of(const TracedStep& step, std::span<const std::uint32_t> world_ranks) {
  TraceSource source{step.title, step.dag, step.timeline};
  source.ranks =
      world_ranks.empty() ? representative_ranks(*step.dag, *step.timeline) : traced_ranks(*step.dag, step.class_of, world_ranks);
  count_memory(source);
  if (!step.simulated) return source;
  count_link_use(source);
  source.issued = issue_dates(*step.dag, *step.timeline);
  const auto bottlenecks = std::make_shared<Bottlenecks>(*step.dag);
  source.bound = [bottlenecks](TaskId id) { return bottlenecks->of(id); };
  return source;
}

}  // namespace

TraceOutput::TraceOutput(const std::string& path, std::string_view ranks, std::int64_t world) {
  if (!ranks.empty()) ranks_ = parse_ranks(ranks, world);
  trace_ = open_trace(path);
}

std::vector<std::string> TraceOutput::write(const std::vector<TracedStep>& steps) {
  std::vector<TraceSource> sources;
  for (const TracedStep& step : steps) sources.push_back(source_of(step, ranks_));
  return trace_->write(sources);
}

}  // namespace tandem::studies
