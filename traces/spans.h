#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traces/trace.h"

namespace tandem::traces {

/// A span's place in the flow that joins the members of a collective or transfer.
enum class FlowRole : std::uint8_t {
  none,
  source,
  step,
  last
};

/// One task in whole nanoseconds since the step began.
struct Span {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  TaskId task = 0;
  std::uint32_t track = 0;  ///< index into `SourceSpans::tracks`
  FlowRole flow = FlowRole::none;
};

/// One stream of one rank, if anything ran on it. Its spans follow one another without overlap, in the order they ran.
struct Track {
  RankIndex rank = 0;
  Stream stream = Stream::compute;
  std::uint32_t first_span = 0;
  std::uint32_t span_count = 0;
};

/// The tracks of one rank.
struct RankTracks {
  RankIndex rank = 0;
  std::uint32_t first_track = 0;
  std::uint32_t track_count = 0;
};

/// The spans that one collective joins: the one it leaves from (a transfer's send), then the others in the order they ended.
/// Every other span ends after the first began.
struct Flow {
  GroupId group = 0;
  std::vector<std::uint32_t> spans;
};

/// The spans and counters of one source, which every format writes, so that all formats carry the same.
struct SourceSpans {
  std::vector<Span> spans;    ///< track by track
  std::vector<Track> tracks;  ///< rank by rank
  std::vector<RankTracks> ranks;
  std::vector<Flow> flows;
  std::vector<std::string> process_names;  ///< by rank of the DAG: "rank 17 · tp 1 · pp 0 · dp 2"
  std::string cluster_name;                ///< of the process that holds what is counted of the whole cluster

  std::int32_t first_pid = 1;  ///< viewers take process 0 for the idle task of the kernel
  std::int32_t cluster_pid = 0;
  std::uint64_t first_flow = 1;

  std::int32_t pid_of(const Rank& rank) const { return first_pid + static_cast<std::int32_t>(rank.world_rank); }
  /// Returns whether the span after this one on its track starts when this one ends.
  bool followed_at_once(std::size_t span) const {
    return span + 1 < spans.size() && spans[span + 1].track == spans[span].track &&
           spans[span + 1].start_ns == spans[span].end_ns;
  }
  std::span<const Track> tracks_of(const RankTracks& of) const { return {tracks.data() + of.first_track, of.track_count}; }
  std::uint64_t id_of(const Flow& flow) const { return first_flow + flow.group; }
};

constexpr std::int32_t tid_of(Stream stream) { return static_cast<std::int32_t>(stream) + 1; }

/// A counter's value from a time on.
struct CounterPoint {
  std::int64_t time_ns = 0;
  double value = 0;
};

/// Returns a counter's points in whole nanoseconds: each time once, and no value twice in a row.
std::vector<CounterPoint> points_of(const TraceCounter& counter);

/// Writes ascending ranks as "0, 5, 16-31".
std::string rank_list(std::span<const std::uint32_t> ranks);

/// Returns one entry per source, with processes and flows numbered through. Throws std::logic_error if a timeline is not its
/// DAG's.
std::vector<SourceSpans> spans_of(const std::vector<TraceSource>& sources);

}  // namespace tandem::traces
