#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/annotations.h"
#include "traces/launches.h"
#include "traces/output_file.h"
#include "traces/spans.h"

namespace tandem::traces {

/// The array of events of a Chrome JSON trace, written one by one out of one string.
class EventStream {
 public:
  explicit EventStream(OutputFile& out) : out_(out) {}

  /// Starts an event: the caller appends members and closes it with `finish`.
  std::string& begin(std::string_view phase, std::int32_t pid, std::int32_t tid);
  void finish();

 private:
  OutputFile& out_;
  std::string event_;
  bool first_ = true;
};

/// Returns the head of a trace file, up to its array of events; `chrome_tail` closes it. Holistic Trace Analysis takes a trace's
/// rank from the text `"rank": 0`, so the space after the colon counts.
std::string chrome_head(std::uint32_t rank, std::int64_t world_size);
inline constexpr std::string_view chrome_tail = "\n]}\n";

/// The way in which communication is named.
enum class CollectiveNames : std::uint8_t {
  own,
  nccl  ///< after NCCL's kernels before 2.19: "ncclKernel_AllReduce(gradients)", which is what every version of readers knows
};

/// One source as Chrome's events: times in microseconds, to the nanosecond.
class ChromeEvents {
 public:
  /// `launches`: null where the CPU is not shown; must outlive this.
  ChromeEvents(const TraceSource& source, const SourceSpans& spans, CollectiveNames names, const Launches* launches = nullptr);

  /// Writes a rank's process with its threads, slices and counters; where the CPU is shown, first its thread, with the iteration,
  /// an operator and a launch for each task, whose `correlation` both have.
  void write_rank(const RankTracks& rank, EventStream& stream);
  void write_flows(EventStream& stream) const;
  void write_cluster_counters(EventStream& stream) const;

 private:
  const TraceSource& source_;
  const SourceSpans& spans_;
  CollectiveNames collective_names_;
  const Launches* launches_;
  std::vector<std::string> names_, communicators_;  ///< in JSON's quotes
  Annotator annotator_;

  std::int64_t shift_ns() const { return launches_ == nullptr ? 0 : launches_->shift_ns(); }
  void write_cpu(const RankTracks& rank, std::int32_t pid, EventStream& stream) const;
  void write_slice(std::size_t index, std::int32_t pid, std::int32_t tid, EventStream& stream);
  void write_counters(std::optional<RankIndex> rank, std::int32_t pid, EventStream& stream) const;
  void append_name(std::string& event, const Task& task) const;
  void append_record(std::string& event, TaskId id) const;
};

}  // namespace tandem::traces
