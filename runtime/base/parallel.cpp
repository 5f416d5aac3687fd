#include "runtime/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace tandem {
namespace {

/// More would gain little, and each takes address space of its own, which a memory limit counts.
constexpr std::size_t worth_starting = 8;

std::size_t limit = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, worth_starting);

}  // namespace

std::size_t most_threads() { return limit; }

void limit_threads(std::size_t most) { limit = std::max<std::size_t>(1, most); }

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> thrown(count);
  std::atomic<std::size_t> next = 0;
  const auto take_numbers = [&] {
    for (std::size_t number = next++; number < count; number = next++) {
      try {
        work(number);
      } catch (...) {
        thrown[number] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(count, limit); ++i) others.emplace_back(take_numbers);
    take_numbers();
  }
  for (const std::exception_ptr& error : thrown)
    if (error) std::rethrow_exception(error);
}

}  // namespace tandem
