#pragma once

#include <cstddef>
#include <functional>

namespace tandem {

// Work of this process that is done by several threads at a time. They end with the call that started them, unless they are kept:
// a process without threads can fork children, as simulations are.

/// Returns how many threads may work at a time: one for each processor, at most 8, until `limit_threads` says otherwise. Children
/// inherit it.
std::size_t most_threads();
/// Says how many may, at least one: for a process that works beside others like it.
void limit_threads(std::size_t most);

/// Does `work` with the numbers below `count`, each once, and returns when all is done. Threads take numbers in order, so the
/// largest pieces of work should come first. Throws what the lowest number threw, if any did.
void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work);

/// Does `here` on this thread and `beside` on another one, or after it where one thread may work. Throws what `here` threw, or
/// else `beside`.
void do_beside(const std::function<void()>& here, const std::function<void()>& beside);

/// Starts as many threads as may work, which wait for what `in_parallel` has to do: for a process that loads a library beside
/// other work, as the system starts no thread while one is loaded (glibc 2.36). To be called while nothing works.
void keep_threads();
/// Ends them, where there are any: before a process forks. To be called while nothing works.
void end_kept_threads();

using WorkAtPlace = std::function<void(std::size_t number, std::size_t place)>;
/// Makes something of each number below `count`, several at a time, and joins it with what was made of those before, one at a
/// time and in their order. What is made of a number is at one of `places` until it is joined, and nothing else is: so many there
/// are at most. Where a number throws, in either, no later one is joined, and that is thrown.
void make_and_join(std::size_t count, std::size_t places, const WorkAtPlace& make, const WorkAtPlace& join);

}  // namespace tandem
