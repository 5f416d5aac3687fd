#include "traces/timeline_file.h"

#include "traces/own_file.h"

namespace tandem {
namespace {

constexpr Format timeline_format{.name = "tandem-timeline", .version = 1, .written_by = "tandem-run --out"};

static_assert(names_every_field<Timeline>());

}  // namespace

std::string to_bytes(const Timeline& timeline) {
  file::Content content;
  write_table(timeline, *content.add_tables());
  return seal(timeline_format, content);
}

bool is_timeline(const std::string& path) { return begins_as(timeline_format, path); }

Timeline read_timeline(const std::string& path, std::size_t tasks) {
  const file::Content content = unseal(timeline_format, path).content;
  Timeline timeline;
  try {
    if (content.tables_size() != 1) throw CorruptTable("it has not one table");
    read_table(content.tables(0), timeline);
  } catch (const CorruptTable& flaw) {
    throw corrupt(timeline_format, path, flaw.what());
  }
  if (timeline.start.size() != tasks || timeline.end.size() != tasks) {
    throw InputError({path, 0, 0}, "is the timeline of " + std::to_string(timeline.start.size()) + " tasks, expected that of " +
                                       std::to_string(tasks));
  }
  return timeline;
}

}  // namespace tandem
