#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <type_traits>
#include <vector>

#include "runtime/base/parallel.h"
#include "sim/child_process.h"
#include "studies/runner/process_share.h"

namespace tandem::studies {

/// Does `work` with each number below `count`, in `jobs` children of this process, and tells `progress` now and then how many are
/// done. Neighbouring numbers, so many as a block has, go to the same child, which may remember what they have in common. Only
/// shared memory comes back. Throws as ChildProcess::wait does.
inline void in_children(std::size_t count, std::size_t jobs, std::size_t block, const std::function<void(std::size_t)>& work,
                        const std::function<void(std::size_t done, std::size_t of)>& progress) {
  SharedCounter done;
  const std::size_t blocks = (count + block - 1) / block, children = std::min(std::max<std::size_t>(1, jobs), blocks);
  const auto work_through = [&](std::size_t child) {
    limit_threads(share_of(children, 0).threads);
    for (std::size_t begin = child * block; begin < count; begin += children * block)
      for (std::size_t i = begin; i < std::min(count, begin + block); ++i, ++done.value()) work(i);
  };
  std::deque<ChildProcess> running;
  for (std::size_t child = 0; child < children; ++child) running.emplace_back([&, child] { work_through(child); });
  for (ChildProcess& child : running) child.wait([&] { progress(done.value(), count); });
}

/// Returns what `work` returns of each number below `count`, done likewise in blocks of neighbours that keep every child busy.
template <typename Found>
std::vector<Found> found_in_children(std::size_t count, std::size_t jobs, const std::function<Found(std::size_t)>& work,
                                     const std::function<void(std::size_t done, std::size_t of)>& progress) {
  static_assert(std::is_trivially_copyable_v<Found>);  // it comes back as bytes
  constexpr std::size_t doubles_each = (sizeof(Found) + sizeof(double) - 1) / sizeof(double);
  constexpr std::size_t largest_block = 32, blocks_each = 4;
  const std::size_t block = std::clamp<std::size_t>(count / (blocks_each * std::max<std::size_t>(1, jobs)), 1, largest_block);
  SharedDoubles shared(count * doubles_each);
  const auto share = [&](std::size_t i) {
    const Found one = work(i);
    std::memcpy(&shared.values()[i * doubles_each], &one, sizeof one);
  };
  in_children(count, jobs, block, share, progress);
  std::vector<Found> found(count);
  for (std::size_t i = 0; i < count; ++i)
    std::memcpy(static_cast<void*>(&found[i]), &shared.values()[i * doubles_each], sizeof(Found));
  return found;
}

}  // namespace tandem::studies
