#include "runtime/dag/tasks.h"

#include <algorithm>
#include <iterator>

namespace tandem {

static_assert(std::random_access_iterator<Tasks::Iterator>);

std::uint64_t Tasks::Hash::operator()(const Task& kind) const {
  const auto bits = [](auto value) { return static_cast<std::uint64_t>(value) & 0xFFFFFFFF; };
  const std::uint64_t labels = bits(kind.op) | bits(kind.phase) << 8 | bits(kind.axis) << 16 | bits(kind.stream) << 24;
  const std::uint64_t place = (bits(kind.layer) & 0xFFFF) | (bits(kind.chunk) & 0xFFFF) << 16;
  return hash(hash(labels | bits(kind.rank) << 32) ^ (bits(kind.attributes) | bits(kind.kernel) << 32)) ^
         (place | bits(kind.name) << 32);
}

bool Tasks::operator==(const Tasks& other) const { return std::ranges::equal(*this, other); }

Tasks::Entry Tasks::entry_of(const Task& task) {
  Task kind = task;
  const Task none;
  kind.first_operand = none.first_operand;
  kind.group = none.group;
  kind.micro_batch = none.micro_batch;
  const std::uint32_t before = entries_.empty() ? kinds_.none : entries_.back().kind;
  return {kinds_.number_of(kind, before), task.first_operand, task.group, task.micro_batch};
}

void Tasks::append(const Tasks& others, std::span<const Task> kinds, std::span<const GroupId> groups, std::uint32_t operands) {
  std::vector<std::uint32_t> kind_here;
  kind_here.reserve(kinds.size());
  for (const Task& kind : kinds) kind_here.push_back(kinds_.number_of(kind, kind_here.empty() ? kinds_.none : kind_here.back()));
  const std::size_t first = entries_.size();
  entries_.insert(entries_.end(), others.entries_.begin(), others.entries_.end());
  for (Entry& entry : std::span(entries_).subspan(first)) {
    entry.kind = kind_here[entry.kind];
    entry.first_operand += operands;
    if (entry.group != no_id) entry.group = groups[entry.group];
  }
}

void Tasks::clear() {
  entries_.clear();
  kinds_.clear();
}

}  // namespace tandem
