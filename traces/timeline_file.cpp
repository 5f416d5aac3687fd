#include "traces/timeline_file.h"

#include <stdexcept>
#include <utility>
#include <vector>

#include "traces/own_file.h"

namespace tandem::traces {
namespace {

constexpr Format timeline_format{.name = "tandem-timeline", .version = 2, .written_by = "tandem-run --out"};

static_assert(names_every_field<TimelineOrigin>());

/// Digests what is executed, and nothing that only the simulator reads.
std::uint32_t digest_of(const Dag& dag) {
  file::Content content;
  std::vector<std::uint32_t> ranks;
  for (const Rank& rank : dag.ranks) ranks.push_back(rank.world_rank);
  write_table(ranks, *content.add_tables());
  write_table(dag.names, *content.add_tables());
  write_table(dag.attributes, *content.add_tables());
  write_table(dag.buffers, *content.add_tables());
  write_table(dag.tasks, *content.add_tables());
  write_table(dag.operands, *content.add_tables());
  write_table(dag.group_tasks, *content.add_tables());
  return checksum_of(content.SerializeAsString());
}

}  // namespace

std::string to_bytes(const Dag& dag, const MeasuredTimeline& measured) {
  if (measured.timeline.repeat.times > 0) throw std::logic_error("a file has every task of a step");
  file::Content content;
  write_table(measured.timeline, *content.add_tables());
  write_table(TimelineOrigin{digest_of(dag), measured.executed_on}, *content.add_tables());
  return seal(timeline_format, content);
}

bool is_timeline(const std::string& path) { return begins_as(timeline_format, path); }

MeasuredTimeline read_timeline(const std::string& path, const Dag& dag) {
  const file::Content content = unseal(timeline_format, path).content;
  Timeline timeline;
  TimelineOrigin origin;
  try {
    if (content.tables_size() != 2) throw CorruptTable("it has not two tables");
    read_table(content.tables(0), timeline);
    read_table(content.tables(1), origin);
  } catch (const CorruptTable& flaw) {
    throw corrupt(timeline_format, path, flaw.what());
  }
  const std::size_t tasks = dag.tasks.size();
  if (timeline.start.size() != tasks || timeline.end.size() != tasks) {
    throw InputError({path, 0, 0}, "is the timeline of " + std::to_string(timeline.start.size()) + " tasks, expected that of " +
                                       std::to_string(tasks));
  }
  if (origin.dag != digest_of(dag))
    throw InputError({path, 0, 0}, "is the timeline of another step with as many tasks; expected one of the same scenario");
  return {std::move(timeline), std::move(origin.executed_on)};
}

}  // namespace tandem::traces
