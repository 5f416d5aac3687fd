#include "runtime/dag/buffers.h"

#include <array>

#include "runtime/base/hash.h"

namespace tandem {

std::string_view name_of(BufferKind kind) {
  static constexpr std::array<std::string_view, 7> names{"parameter",     "gradient", "optimizer", "activation",
                                                         "communication", "input",    "host"};
  return names.at(static_cast<std::size_t>(kind));
}

std::uint64_t Buffers::Hash::operator()(const Distinct& distinct) const {
  const Buffer& buffer = distinct.buffer;
  std::uint64_t key = hash_of_place(buffer.rank, buffer.base, buffer.offset);
  for (const std::int64_t extent : buffer.shape.dims) key = hash(key ^ static_cast<std::uint64_t>(extent));
  return key ^ static_cast<std::uint64_t>(buffer.dtype) << 8 ^ static_cast<std::uint64_t>(buffer.kind);
}

std::uint32_t Buffers::number_of(const Buffer& buffer, BufferId id) {
  // What views of a parameter have in common is the parameter; what views of an activation have in common is how long ago it was
  // made.
  Distinct distinct{.buffer = buffer, .is_counted_back = !is_persistent(buffer.kind) || buffer.base == id};
  if (distinct.is_counted_back) distinct.buffer.base = id - buffer.base;
  return distinct_.number_of(distinct, numbers_.empty() ? distinct_.none : numbers_.back());
}

void Buffers::push_like(BufferId earlier, BufferId base) {
  const Distinct& distinct = distinct_[numbers_[earlier]];
  const auto id = static_cast<BufferId>(size());
  if (distinct.buffer.base == (distinct.is_counted_back ? id - base : base)) {
    numbers_.push_back(numbers_[earlier]);
    return;
  }
  Buffer buffer = distinct.buffer;
  buffer.base = base;
  push_back(buffer);
}

void Buffers::append(const Buffers& others) { append_from(0, others, static_cast<BufferId>(size())); }

void Buffers::append_as(const Buffers& others, RankIndex rank, const Buffers& own) {
  const auto first = static_cast<BufferId>(size());
  append_from(0, own, first);
  append_from(own.size(), others, first, rank);
}

void Buffers::append_from(std::size_t place, const Buffers& others, BufferId first, RankIndex rank) {
  std::vector<std::uint32_t> number_here;
  number_here.reserve(others.distinct_.size());
  for (Distinct distinct : others.distinct_.values()) {
    if (!distinct.is_counted_back) distinct.buffer.base += first;
    if (rank != no_id) distinct.buffer.rank = rank;
    number_here.push_back(distinct_.number_of(distinct, number_here.empty() ? distinct_.none : number_here.back()));
  }
  for (; place < others.numbers_.size(); ++place) numbers_.push_back(number_here[others.numbers_[place]]);
}

void Buffers::reserve(std::size_t count) { numbers_.reserve(count); }

void Buffers::clear() {
  numbers_.clear();
  distinct_.clear();
}

}  // namespace tandem
