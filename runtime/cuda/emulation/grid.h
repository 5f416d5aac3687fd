#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <source_location>
#include <string>

/// CUDA's launch model on the CPU: what runtime/cuda/module/launch.h starts where no GPU is. Blocks run one after the other, the
/// threads of a block as fibers of one thread of this process, which change only where they wait for each other.
///
/// What a GPU would leave undefined ends the launch with std::runtime_error, with the kernel, the block and the places in it:
/// a __syncthreads that not all threads reach, or at different places; a warp's operation that a lane of its mask never comes to;
/// more threads or shared memory than there are. Shared memory is filled with NaN before each block. One launch at a time.
namespace tandem::emulation {

inline constexpr unsigned warp_size = 32;

/// The order in which a launch takes its blocks, and a block its threads. Results must not depend on it.
struct Order {
  bool shuffled = false;  ///< else as they are numbered
  unsigned seed = 0;
};

/// Sets the order of launches while it lives.
class ScopedOrder {
 public:
  explicit ScopedOrder(Order order);
  ~ScopedOrder();
  ScopedOrder(const ScopedOrder&) = delete;
  ScopedOrder& operator=(const ScopedOrder&) = delete;

 private:
  Order before_;
};

/// Runs `thread` once for each thread of the grid, with threadIdx and the like set.
void run_grid(const std::string& kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
              const std::function<void()>& thread);

// Called by the threads.

void wait_for_block(std::source_location place);

/// Exchanges data among the lanes of a warp: each gives `bytes` bytes and gets those of all lanes of `mask`, by lane.
void exchange(unsigned mask, const void* mine, void* of_all, std::size_t bytes, std::source_location place);

/// A copy that arrives as late as it may: when the thread waits for its group. A copy counts to the group that the thread closes
/// next. One that is never waited for never arrives.
void defer_copy(void* to, const void* from, std::size_t bytes);
void close_group_of_copies();
/// Lets all groups but the `in_flight` latest arrive.
void wait_for_copies(std::size_t in_flight);

/// Returns a block's shared array, the same for all threads that pass the same `site`.
void* shared_bytes_of(const void* site, std::size_t bytes);
void* dynamic_shared_bytes();
/// Whether an address lies in shared memory of the block.
bool is_shared(const void* address);

}  // namespace tandem::emulation
