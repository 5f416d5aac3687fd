#include "runtime/dag/access_order.h"

#include <utility>

namespace tandem {

void AccessOrder::note(std::size_t buffer, const Access& access, std::vector<TaskId>& waits) {
  std::uint32_t* link = &first_[buffer];
  while (*link != no_id) {
    Record& record = records_[*link];
    const Access& earlier = record.access;
    const bool overlap = earlier.begin < access.end && access.begin < earlier.end;
    if (overlap && (access.writes || earlier.writes) && earlier.stream != access.stream) waits.push_back(earlier.task);
    // On one stream a later reader ends after an earlier one: only the last need be waited for.
    const bool is_followed = access.writes || (!earlier.writes && earlier.stream == access.stream);
    if (is_followed && access.begin <= earlier.begin && earlier.end <= access.end) {
      const std::uint32_t next = std::exchange(record.next, free_);
      free_ = std::exchange(*link, next);
    } else {
      link = &record.next;
    }
  }
  const Record record{access, first_[buffer]};
  if (free_ == no_id) {
    first_[buffer] = static_cast<std::uint32_t>(records_.size());
    records_.push_back(record);
  } else {
    first_[buffer] = free_;
    free_ = std::exchange(records_[free_], record).next;
  }
}

void AccessOrder::clear() {
  records_.clear();
  first_.clear();
  free_ = no_id;
}

}  // namespace tandem
