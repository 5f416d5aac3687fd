#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/base/numbered.h"
#include "runtime/dag/task.h"

namespace tandem {

/// The tasks of a DAG, by id. There are millions in a step, and thousands that differ in more than their micro-batch, their group
/// and where their operands begin. So each id holds these and the number of all else, and a task comes by value.
class Tasks {
 public:
  using value_type = Task;
  class Iterator;
  /// What is held for each id.
  struct Entry {
    std::uint32_t kind = 0;  ///< the number of all else
    std::uint32_t first_operand = 0;
    GroupId group = no_id;
    std::int32_t micro_batch = -1;
  };

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  Task operator[](TaskId id) const {
    const Entry& entry = entries_[id];
    Task task = kinds_[entry.kind];
    task.first_operand = entry.first_operand;
    task.group = entry.group;
    task.micro_batch = entry.micro_batch;
    return task;
  }
  Task front() const { return (*this)[0]; }
  Task back() const { return (*this)[static_cast<TaskId>(size() - 1)]; }
  Iterator begin() const;
  Iterator end() const;
  bool operator==(const Tasks& other) const;

  void push_back(const Task& task) { entries_.push_back(entry_of(task)); }
  /// Adds one that differs from an earlier one in this alone.
  void push_like(TaskId earlier, std::uint32_t first_operand, GroupId group, std::int32_t micro_batch) {
    entries_.push_back({entries_[earlier].kind, first_operand, group, micro_batch});
  }
  void pop_back() { entries_.pop_back(); }
  void set(TaskId id, const Task& task) { entries_[id] = entry_of(task); }

  /// What differs, each without micro-batch, group and operands, in the order in which they came first.
  const std::vector<Task>& kinds() const { return kinds_.values(); }
  /// Appends others: what theirs differ in is here `kinds`, one for each of `others.kinds()`, their groups have these numbers,
  /// and their operands begin after so many more.
  void append(const Tasks& others, std::span<const Task> kinds, std::span<const GroupId> groups, std::uint32_t operands);

  /// Makes room for so many in all.
  void reserve(std::size_t count) { entries_.reserve(count); }
  std::size_t capacity() const { return entries_.capacity(); }
  void clear();

  /// Where what is held for each id lies, for the processor to fetch (fetch_ahead.h).
  const Entry* data() const { return entries_.data(); }

 private:
  struct Hash {
    std::uint64_t operator()(const Task& kind) const;
  };

  std::vector<Entry> entries_;
  Numbered<Task, Hash> kinds_;

  Entry entry_of(const Task& task);
};

class Tasks::Iterator {
 public:
  using value_type = Task;
  using difference_type = std::ptrdiff_t;
  struct Arrow {
    Task task;
    const Task* operator->() const { return &task; }
  };

  Iterator() = default;
  Iterator(const Tasks& tasks, TaskId id) : tasks_(&tasks), id_(id) {}
  Task operator*() const { return (*tasks_)[id_]; }
  Arrow operator->() const { return {**this}; }
  Task operator[](difference_type n) const { return *(*this + n); }
  Iterator& operator+=(difference_type n) {
    id_ = static_cast<TaskId>(id_ + n);
    return *this;
  }
  Iterator& operator-=(difference_type n) { return *this += -n; }
  Iterator& operator++() { return *this += 1; }
  Iterator& operator--() { return *this -= 1; }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++*this;
    return before;
  }
  Iterator operator--(int) {
    const Iterator before = *this;
    --*this;
    return before;
  }
  friend Iterator operator+(Iterator at, difference_type n) { return at += n; }
  friend Iterator operator+(difference_type n, Iterator at) { return at += n; }
  friend Iterator operator-(Iterator at, difference_type n) { return at -= n; }
  friend difference_type operator-(const Iterator& a, const Iterator& b) {
    return static_cast<difference_type>(a.id_) - static_cast<difference_type>(b.id_);
  }
  bool operator==(const Iterator& other) const { return id_ == other.id_; }
  std::strong_ordering operator<=>(const Iterator& other) const { return id_ <=> other.id_; }

 private:
  const Tasks* tasks_ = nullptr;
  TaskId id_ = 0;
};

inline Tasks::Iterator Tasks::begin() const { return {*this, 0}; }
inline Tasks::Iterator Tasks::end() const { return {*this, static_cast<TaskId>(size())}; }

}  // namespace tandem
