#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <source_location>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/emulation/fiber.h"

namespace tandem::emulation {

/// The threads of a block and what they share. Used for many blocks, one after the other.
class Block {
 public:
  explicit Block(std::size_t threads) : threads_(threads) {}

  /// Sets the block's dimensions and shared memory; `threads` are as many as before.
  void shape(dim3 threads, std::size_t dynamic_shared_bytes);

  /// Runs `body` as each thread, taken in the given order. Throws what a thread threw, or how the threads wait for each other in
  /// vain.
  void run(const std::function<void()>& body, const std::vector<unsigned>& order);

  // Called by the thread that runs now; see grid.h.
  void wait_for_block(std::source_location place);
  void exchange(unsigned mask, const void* mine, void* of_all, std::size_t bytes, std::source_location place);
  void defer_copy(void* to, const void* from, std::size_t bytes) { threads_[now_].copies.back().push_back({to, from, bytes}); }
  void close_group_of_copies() { threads_[now_].copies.emplace_back(); }
  void wait_for_copies(std::size_t in_flight);
  void* shared_bytes_of(const void* site, std::size_t bytes);
  void* dynamic_shared_bytes() { return dynamic_.get(); }
  bool is_shared(const void* address) const;

 private:
  enum class State {
    ready,
    waits_for_block,
    waits_for_warp,
    ended
  };
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  struct Thread {
    Fiber fiber;
    std::deque<std::vector<Copy>> copies;  ///< that have not arrived, by group; the last group is open
    State state = State::ready;
    std::source_location place;
    unsigned mask = 0;  ///< of the exchange it waits for, as the next three
    const void* mine = nullptr;
    void* of_all = nullptr;
    std::size_t bytes = 0;
  };

  void clear_shared();
  void wait(State state, std::source_location place);
  bool resume_ready(const std::vector<unsigned>& order);
  void release_block();
  bool all_wait_in(unsigned first, unsigned mask, std::size_t bytes);
  [[noreturn]] void report_deadlock() const;

  dim3 size_;
  std::vector<Thread> threads_;
  unsigned now_ = 0;  ///< the thread that runs
  std::exception_ptr error_;
  std::vector<std::byte> exchanged_;  ///< what the lanes of a warp gave, by lane
  struct Array {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };
  std::unordered_map<const void*, Array> arrays_;
  std::size_t static_bytes_ = 0;
  std::unique_ptr<std::byte[]> dynamic_;
  std::size_t dynamic_bytes_ = 0;
};

}  // namespace tandem::emulation
