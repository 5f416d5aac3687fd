#include "traces/chrome_events.h"

namespace tandem::traces {

void write_chrome(const std::vector<TraceSource>& sources, OutputFile& out) {
  const std::vector<SourceSpans> spans = spans_of(sources);
  const Dag& first = *sources.front().dag;
  out.write(
      chrome_head(spans.front().ranks.empty() ? 0 : first.ranks[spans.front().ranks.front().rank].world_rank, first.info.gpus));
  EventStream stream(out);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    ChromeEvents events(sources[i], spans[i], CollectiveNames::own);
    for (const RankTracks& rank : spans[i].ranks) events.write_rank(rank, stream);
    events.write_flows(stream);
    events.write_cluster_counters(stream);
  }
  out.write(chrome_tail);
}

}  // namespace tandem::traces
