#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>

#include "sim/child_process.h"

namespace tandem::studies {

/// Does `work` with each number below `count`, in `jobs` children of this process, and tells `progress` now and then how many are
/// done. Neighbouring numbers, so many as a block has, go to the same child, which may remember what they have in common. Only
/// shared memory comes back. Throws as ChildProcess::wait does.
inline void in_children(std::size_t count, std::size_t jobs, std::size_t block, const std::function<void(std::size_t)>& work,
                        const std::function<void(std::size_t done, std::size_t of)>& progress) {
  SharedCounter done;
  const std::size_t blocks = (count + block - 1) / block, children = std::min(std::max<std::size_t>(1, jobs), blocks);
  const auto work_through = [&](std::size_t child) {
    for (std::size_t begin = child * block; begin < count; begin += children * block)
      for (std::size_t i = begin; i < std::min(count, begin + block); ++i, ++done.value()) work(i);
  };
  std::deque<ChildProcess> running;
  for (std::size_t child = 0; child < children; ++child) running.emplace_back([&, child] { work_through(child); });
  for (ChildProcess& child : running) child.wait([&] { progress(done.value(), count); });
}

}  // namespace tandem::studies
