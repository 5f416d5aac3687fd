#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/turns.h"

namespace tandem::studies::emulation_test {
namespace {

using emulation::ScopedOrder;
using testing::AllOf;
using testing::HasSubstr;

template <typename... Parameters, typename... Arguments>
std::string error_of(const Grid& grid, void (*kernel)(Parameters...), Arguments... arguments) {
  try {
    launch("kernel", {}, grid, kernel, arguments...);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// Each thread writes its own number, from all the built-in variables.
__global__ void number_threads(int* numbers) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned number = block * blockDim.x * blockDim.y * blockDim.z + thread;
  numbers[number] += static_cast<int>(number);
}

TEST(Emulation, RunsEachThreadOfEachBlockOnce) {
  for (const bool shuffled : {false, true}) {
    const ScopedOrder order({shuffled, 7});
    std::vector<int> numbers(2 * 3 * 4 * 5 * 2 * 3, 0), expected(numbers.size());
    launch("number_threads", {}, {dim3(2, 3, 4), dim3(5, 2, 3)}, number_threads, numbers.data());
    std::iota(expected.begin(), expected.end(), 0);
    EXPECT_EQ(numbers, expected);
  }
}

// Each thread passes its value to the next through shared memory, `rounds` times around.
__global__ void pass_on(int* values, int rounds) {
  TANDEM_SHARED(int, fixed, 64);
  TANDEM_DYNAMIC_SHARED(dynamic);
  int* const grown = reinterpret_cast<int*>(dynamic);
  const unsigned i = threadIdx.x;
  int value = values[blockIdx.x * 64 + i];
  for (int round = 0; round < rounds; ++round) {
    fixed[i] = value;
    __syncthreads();
    grown[(i + 1) % 64] = fixed[i];
    __syncthreads();
    value = grown[i];
  }
  values[blockIdx.x * 64 + i] = value;
}

TEST(Emulation, ThreadsOfABlockShareMemoryAndWaitForEachOther) {
  for (const unsigned seed : {0U, 1U, 2U}) {
    const ScopedOrder order({seed > 0, seed});
    std::vector<int> values(128), expected;
    std::iota(values.begin(), values.end(), 0);
    for (int i = 0; i < 128; ++i) expected.push_back(i / 64 * 64 + (i + 64 - 5) % 64);
    launch("pass_on", {}, {dim3(2), dim3(64), 64 * sizeof(int)}, pass_on, values.data(), 5);
    EXPECT_EQ(values, expected);
  }
}

__global__ void shared_memory_starts_as(float* value) {
  TANDEM_SHARED(float, fixed, 1);
  value[blockIdx.x] = *fixed;
  *fixed = 1;
}

TEST(Emulation, SharedMemoryStartsAsNaNInEachBlock) {
  std::vector<float> values(3, 0);
  launch("shared_memory_starts_as", {}, {dim3(3), dim3(1)}, shared_memory_starts_as, values.data());
  for (const float value : values) EXPECT_TRUE(std::isnan(value));
}

__global__ void shuffle(int* results) {
  const int lane = static_cast<int>(threadIdx.x);
  int* const mine = results + 9 * lane;
  mine[0] = __shfl_sync(every_lane, lane, 5);
  mine[1] = __shfl_sync(every_lane, lane, 3, 8);
  mine[2] = __shfl_xor_sync(every_lane, lane, 6);
  mine[3] = __shfl_down_sync(every_lane, lane, 3);
  mine[4] = __shfl_up_sync(every_lane, lane, 3, 16);
  mine[5] = static_cast<int>(__ballot_sync(every_lane, lane % 3 == 0));
  mine[6] = __all_sync(every_lane, lane < 32) + 2 * __all_sync(every_lane, lane < 31);
  mine[7] = __any_sync(every_lane, lane == 31) + 2 * __any_sync(every_lane, lane == 32);
  mine[8] = lane < 16 ? __shfl_xor_sync(0x0000FFFFU, lane, 1) : __shfl_xor_sync(0xFFFF0000U, lane, 2);
}

// The semantics of CUDA C++ Programming Guide, "Warp Shuffle Functions" and "Warp Vote Functions".
TEST(Emulation, LanesOfAWarpExchangeValues) {
  std::vector<int> results(32 * 9);
  const ScopedOrder order({true, 3});
  launch("shuffle", {}, {dim3(1), dim3(32)}, shuffle, results.data());
  for (int lane = 0; lane < 32; ++lane) {
    const std::vector<int> mine(results.begin() + 9 * lane, results.begin() + 9 * (lane + 1));
    int multiples_of_3 = 0;
    for (int i = 0; i < 32; i += 3) multiples_of_3 |= static_cast<int>(1U << i);
    EXPECT_EQ(mine, (std::vector<int>{5, lane / 8 * 8 + 3, lane ^ 6, lane + 3 < 32 ? lane + 3 : lane,
                                      lane % 16 >= 3 ? lane - 3 : lane, multiples_of_3, 1, 1, lane < 16 ? lane ^ 1 : lane ^ 2}))
        << "lane " << lane;
  }
}

__global__ void reduce(const float* values, float* results) {
  const float value = values[threadIdx.x];
  results[threadIdx.x] = block_sum(value) + 1000 * block_max(value) + 1000000 * block_sum(1);
}

TEST(Emulation, ReducesOverABlock) {
  for (const int threads : {32, 96, 1024}) {
    std::vector<float> values(static_cast<std::size_t>(threads)), results(values.size());
    for (int i = 0; i < threads; ++i) values[static_cast<std::size_t>(i)] = static_cast<float>(i * 7 % 5 - 2);
    const float sum = std::accumulate(values.begin(), values.end(), 0.0F);
    launch("reduce", {}, {dim3(1), dim3(static_cast<unsigned>(threads))}, reduce, values.data(), results.data());
    for (const float result : results) EXPECT_EQ(result, sum + 1000 * 2 + 1000000.0F * static_cast<float>(threads));
  }
}

/// Adds the number's value after those of smaller numbers.
__device__ void add_after_smaller(int number, const float* values, float* sum, int* turn) {
  wait_for_turn(turn, number);
  add_in_turn(sum, values[number]);
  end_turn(turn, number + 1);
}
__global__ void add_by_ticket(const float* values, float* sum, int* turn, int* tickets) {
  add_after_smaller(atomicAdd(tickets, 1), values, sum, turn);
}
__global__ void add_by_block(const float* values, float* sum, int* turn) {
  add_after_smaller(static_cast<int>(blockIdx.x), values, sum, turn);
}

TEST(Emulation, BlocksAddInTurns) {
  const std::vector<float> values = {1e8F, 1, -1e8F, 3, 1e-3F, 5e7F, -5e7F, 2};
  const float in_order = std::accumulate(values.begin(), values.end(), 0.0F);
  ASSERT_NE(std::accumulate(values.rbegin(), values.rend(), 0.0F), in_order);
  const Grid grid{dim3(static_cast<unsigned>(values.size())), dim3(1)};
  for (unsigned seed = 0; seed < 5; ++seed) {
    const ScopedOrder order({seed > 0, seed});
    float sum = 0;
    int turn = 0, tickets = 0;
    launch("add", {}, grid, add_by_ticket, values.data(), &sum, &turn, &tickets);
    EXPECT_EQ(sum, in_order);
    EXPECT_EQ(turn, static_cast<int>(values.size()));
  }
}

// A GPU may begin blocks in another order than they are numbered in, and then never end.
TEST(Emulation, TellsOfATurnThatWouldNeverCome) {
  const std::vector<float> values(8, 1.0F);
  const ScopedOrder order({true, 1});
  float sum = 0;
  int turn = 0;
  EXPECT_THAT(error_of({dim3(8), dim3(1)}, add_by_block, values.data(), &sum, &turn), HasSubstr("that begins after it"));
}

__global__ void count(int* total, unsigned* largest) {
  atomicAdd(total, 1);
  atomicMax(largest, blockIdx.x * blockDim.x + threadIdx.x);
}

TEST(Emulation, AddsAtomically) {
  int total = 0;
  unsigned largest = 0;
  launch("count", {}, {dim3(7), dim3(33)}, count, &total, &largest);
  EXPECT_EQ(total, 7 * 33);
  EXPECT_EQ(largest, 7 * 33 - 1U);
}

/// Every thread copies two chunks of four numbers, a group each, waits for all but `in_flight` groups and passes on what it sees.
template <int in_flight>
__global__ void copy_through_shared(const float* from, float* to) {
  TANDEM_SHARED(float, chunks, 2 * 4 * 32);
  float* const mine = chunks + 8 * threadIdx.x;
  for (int group = 0; group < 2; ++group) {
    copy_async(mine + 4 * group, from + 8 * threadIdx.x + 4 * group);
    copy_async_commit();
  }
  copy_async_wait<in_flight>();
  for (int i = 0; i < 8; ++i) to[8 * threadIdx.x + i] = mine[i];
}

// cp.async of the PTX ISA: what is not waited for may not have arrived.
TEST(Emulation, CopiesArriveWhenTheyAreWaitedFor) {
  alignas(16) float numbers[8 * 32];
  std::iota(std::begin(numbers), std::end(numbers), 1.0F);
  std::vector<float> results(8 * 32);
  const auto arrived = [&](std::size_t i) { return results[i] == numbers[i]; };
  launch("copy", {}, {dim3(1), dim3(32)}, copy_through_shared<0>, static_cast<const float*>(numbers), results.data());
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(arrived(i));
  launch("copy", {}, {dim3(1), dim3(32)}, copy_through_shared<1>, static_cast<const float*>(numbers), results.data());
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(arrived(i), i % 8 < 4);
  launch("copy", {}, {dim3(1), dim3(32)}, copy_through_shared<2>, static_cast<const float*>(numbers), results.data());
  for (std::size_t i = 0; i < results.size(); ++i) EXPECT_TRUE(std::isnan(results[i]));
}

__global__ void half_of_the_block_waits() {
  if (threadIdx.x < 16) __syncthreads();
}
__global__ void the_block_waits_at_two_places() {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __syncthreads();
}
__global__ void a_lane_stays_away() {
  if (threadIdx.x != 3) __syncwarp();
}
__global__ void a_lane_outside_of_its_mask() { __syncwarp(1); }

TEST(Emulation, ReportsThreadsThatWaitInVain) {
  EXPECT_THAT(error_of({dim3(1), dim3(32)}, half_of_the_block_waits),
              AllOf(HasSubstr("kernel, block (0,0,0)"), HasSubstr("16 ended"), HasSubstr("16 wait in __syncthreads")));
  EXPECT_THAT(error_of({dim3(1), dim3(32)}, the_block_waits_at_two_places),
              HasSubstr("16 wait in __syncthreads at emulation_test"));
  EXPECT_THAT(error_of({dim3(1), dim3(32)}, a_lane_stays_away), AllOf(HasSubstr("1 ended"), HasSubstr("31 wait for lanes")));
  EXPECT_THAT(error_of({dim3(1), dim3(32)}, a_lane_outside_of_its_mask), HasSubstr("not in its own mask"));
}

__global__ void load_from(const float* values, float* out) {
  float four[4];
  load(values, four);
  store(out, four);
}

TEST(Emulation, ReportsMisalignedAddresses) {
  alignas(16) float values[8]{1, 2, 3, 4, 5}, out[4]{};
  EXPECT_EQ(error_of({dim3(1), dim3(1)}, load_from, values, out), "");
  EXPECT_EQ(out[3], 4);
  EXPECT_THAT(error_of({dim3(1), dim3(1)}, load_from, values + 1, out), HasSubstr("misaligned"));
}

__global__ void store_one(float* out, bool static_memory, bool dynamic_memory) {
  TANDEM_SHARED(float, mine, 4);
  TANDEM_DYNAMIC_SHARED(bytes);
  const float ones[4] = {1, 1, 1, 1};
  store(static_memory ? mine : dynamic_memory ? reinterpret_cast<float*>(bytes) : out, ones);
}

TEST(Emulation, ReportsStoresToSharedMemoryThatAreMeantForGlobal) {
  alignas(16) float out[4]{};
  const Grid grid{dim3(1), dim3(1), 16};
  EXPECT_EQ(error_of(grid, store_one, out, false, false), "");
  EXPECT_EQ(out[3], 1);
  EXPECT_THAT(error_of(grid, store_one, out, true, false), HasSubstr("global memory is meant"));
  EXPECT_THAT(error_of(grid, store_one, out, false, true), HasSubstr("global memory is meant"));
}

__global__ void nothing() {}

TEST(Emulation, RefusesWhatAGpuRefuses) {
  EXPECT_THAT(error_of({dim3(1), dim3(1025)}, nothing), HasSubstr("invalid configuration"));
  EXPECT_THAT(error_of({dim3(1, 65536), dim3(32)}, nothing), HasSubstr("invalid configuration"));
  EXPECT_THAT(error_of({dim3(1), dim3(32), 228 << 10}, nothing), HasSubstr("invalid configuration"));
  EXPECT_EQ(error_of({dim3(0), dim3(32)}, nothing), "") << "an empty grid is nothing to do";
}

template <typename Element>
void expect_conversion_rounds_to_nearest(int mantissa_bits, float largest) {
  const float ulp = std::exp2(-static_cast<float>(mantissa_bits));  // at 1
  EXPECT_EQ(to_float(from_float<Element>(1 + 0.49F * ulp)), 1);
  EXPECT_EQ(to_float(from_float<Element>(1 + 0.5F * ulp)), 1) << "ties to even";
  EXPECT_EQ(to_float(from_float<Element>(1 + 0.51F * ulp)), 1 + ulp);
  EXPECT_EQ(to_float(from_float<Element>(largest)), largest);
}

TEST(Conversion, RoundsToNearest) {
  expect_conversion_rounds_to_nearest<Bf16>(7, std::exp2(127.0F));
  expect_conversion_rounds_to_nearest<F16>(10, 65504);
  expect_conversion_rounds_to_nearest<F8>(3, 448);
  EXPECT_EQ(to_float(from_float<F8>(1e6F)), 448) << "saturates";
}

}  // namespace
}  // namespace tandem::studies::emulation_test
