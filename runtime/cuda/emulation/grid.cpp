#include "runtime/cuda/emulation/grid.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "runtime/cuda/emulation/block.h"
#include "runtime/cuda/emulation/device.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace tandem::emulation {
namespace {

Order order_now;
Block* block_now = nullptr;

std::vector<unsigned> in_order(std::size_t count, std::mt19937& random) {
  std::vector<unsigned> order(count);
  std::iota(order.begin(), order.end(), 0U);
  if (order_now.shuffled) std::shuffle(order.begin(), order.end(), random);
  return order;
}

void check_limits(dim3 blocks, dim3 threads, std::size_t shared_bytes) {
  const bool grid_fits =
      blocks.x > 0 && blocks.x <= 0x7FFFFFFFU && blocks.y > 0 && blocks.y <= 0xFFFFU && blocks.z > 0 && blocks.z <= 0xFFFFU;
  const bool block_fits = std::size_t{threads.x} * threads.y * threads.z - 1 < 1024 && threads.z <= 64;
  if (!grid_fits || !block_fits || shared_bytes > 227 << 10) throw std::runtime_error("invalid configuration");
}

}  // namespace

ScopedOrder::ScopedOrder(Order order) : before_(order_now) { order_now = order; }
ScopedOrder::~ScopedOrder() { order_now = before_; }

void run_grid(const std::string& kernel, dim3 blocks, dim3 threads, std::size_t shared_bytes,
              const std::function<void()>& thread) {
  std::mt19937 random(order_now.seed);
  try {
    check_limits(blocks, threads, shared_bytes);
    static std::map<std::size_t, Block> by_threads;  // kept, as their stacks take long to make
    const std::size_t count = std::size_t{threads.x} * threads.y * threads.z;
    block_now = &by_threads.try_emplace(count, count).first->second;
    block_now->shape(threads, shared_bytes);
    gridDim = blocks;
    blockDim = threads;
    for (const unsigned i : in_order(std::size_t{blocks.x} * blocks.y * blocks.z, random)) {
      blockIdx = {i % blocks.x, i / blocks.x % blocks.y, i / blocks.x / blocks.y};
      block_now->run(thread, in_order(count, random));
    }
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(kernel + ", block (" + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                             std::to_string(blockIdx.z) + "): " + error.what());
  }
}

void wait_for_block(std::source_location place) { block_now->wait_for_block(place); }

void exchange(unsigned mask, const void* mine, void* of_all, std::size_t bytes, std::source_location place) {
  block_now->exchange(mask, mine, of_all, bytes, place);
}

void defer_copy(void* to, const void* from, std::size_t bytes) { block_now->defer_copy(to, from, bytes); }
void close_group_of_copies() { block_now->close_group_of_copies(); }
void wait_for_copies(std::size_t in_flight) { block_now->wait_for_copies(in_flight); }

void* shared_bytes_of(const void* site, std::size_t bytes) { return block_now->shared_bytes_of(site, bytes); }
void* dynamic_shared_bytes() { return block_now->dynamic_shared_bytes(); }
bool is_shared(const void* address) { return block_now->is_shared(address); }

}  // namespace tandem::emulation
