#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/dag/dag.h"
#include "runtime/dag/ids.h"

namespace tandem {

/// Which tasks a task waits for by what they read and write. It waits for the last writers of what it reads or updates, and for
/// the last readers and writers of what it writes, by intervals of base buffers, so that views of one buffer are told apart. What
/// ran earlier on its own stream needs no waiting for.
class AccessOrder {
 public:
  /// Elements [begin, end) of a base buffer, by a task.
  struct Access {
    TaskId task = 0;
    std::int64_t begin = 0, end = 0;
    Stream stream = Stream::compute;  ///< the task's
    bool writes = false;              ///< or updates
  };

  /// Adds one more buffer, which gets the next number from 0 on.
  void add_buffer() { first_.push_back(no_id); }
  /// Adds one of which no access is noted here.
  void add_untracked_buffer() { first_.push_back(untracked); }
  bool is_tracked(std::size_t buffer) const { return first_[buffer] != untracked; }

  /// Notes an access to a buffer, and appends the tasks that it makes its task wait for, some of them more than once.
  void note(std::size_t buffer, const Access& access, std::vector<TaskId>& waits);

  /// Forgets all buffers. Keeps its room.
  void clear();

 private:
  static constexpr std::uint32_t untracked = no_id - 1;
  /// In a list with the others of its buffer.
  struct Record {
    Access access;
    std::uint32_t next = no_id;  ///< no_id: none
  };

  std::vector<Record> records_;
  std::vector<std::uint32_t> first_;  ///< by buffer
  std::uint32_t free_ = no_id;        ///< first of a list, too
};

}  // namespace tandem
