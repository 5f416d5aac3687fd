#include "traces/launches.h"

#include <algorithm>
#include <cmath>

namespace tandem::traces {
namespace {

constexpr std::int64_t shortest_operator_ns = 3000;
constexpr std::int64_t microsecond_ns = 1000;
constexpr double ns_of_second = 1e9;

/// As early as possible: all after the first follow at once, and none ends after its task starts.
void run_ahead(const SourceSpans& spans, std::vector<CpuOperator>& operators) {
  std::int64_t late = 0;
  for (std::size_t i = 0; i < operators.size(); ++i)
    late = std::max(late, shortest_operator_ns * static_cast<std::int64_t>(i + 1) - spans.spans[operators[i].span].start_ns);
  for (std::size_t i = 0; i < operators.size(); ++i) {
    operators[i].start_ns = shortest_operator_ns * static_cast<std::int64_t>(i) - late;
    operators[i].end_ns = operators[i].start_ns + shortest_operator_ns;
  }
}

/// As they were issued; what would last less than it must begins earlier.
void run_as_issued(const TraceSource& source, const SourceSpans& spans, std::vector<CpuOperator>& operators) {
  for (std::size_t i = operators.size(); i-- > 0;) {
    const Span& span = spans.spans[operators[i].span];
    const Issued issued = source.issued(span.task);
    const auto in_ns = [](Seconds time) { return std::llround(time * ns_of_second); };
    operators[i].end_ns = std::min<std::int64_t>(in_ns(issued.end), span.start_ns);
    if (i + 1 < operators.size()) operators[i].end_ns = std::min(operators[i].end_ns, operators[i + 1].start_ns);
    operators[i].start_ns = std::min<std::int64_t>(in_ns(issued.start), operators[i].end_ns - shortest_operator_ns);
  }
}

}  // namespace

Launches::Launches(const TraceSource& source, const SourceSpans& spans) : of_rank_(source.dag->ranks.size()) {
  for (const RankTracks& rank : spans.ranks) {
    std::vector<CpuOperator>& operators = of_rank_[rank.rank];
    for (const Track& track : spans.tracks_of(rank))
      for (std::uint32_t i = 0; i < track.span_count; ++i) operators.push_back({.span = track.first_span + i});
    std::ranges::sort(operators, {}, [&](const CpuOperator& one) { return spans.spans[one.span].task; });
    source.issued ? run_as_issued(source, spans, operators) : run_ahead(spans, operators);
    // The iteration that the operators are in begins a microsecond before them.
    const std::int64_t first = operators.empty() ? 0 : operators.front().start_ns - microsecond_ns;
    shift_ns_ = std::max(shift_ns_, (-first + microsecond_ns - 1) / microsecond_ns * microsecond_ns);
  }
}

}  // namespace tandem::traces
