#include "sim/bottleneck.h"

#include <gtest/gtest.h>

#include "tests/runtime/small_dag.h"
#include "tests/sim/limited_flow.h"
#include "tests/sim/measured_kernels.h"

namespace tandem::sim::bottleneck_test {
namespace {

Device one_of_each() {
  Device device;
  device.name = "1 GFLOP/s, 1 GB/s, a millisecond to launch";
  device.peak[static_cast<std::size_t>(DType::bf16)] = 1e9;
  device.efficiency.gemm[static_cast<std::size_t>(DType::bf16)].rate = 1;
  device.memory_bandwidth = 1e9;
  device.efficiency.memory = 1;
  device.efficiency.launch = 1e-3;
  return device;
}

Dag gemm_alone(const Device& device, std::int64_t m, std::int64_t n, std::int64_t k) {
  DagBuilder builder;
  builder.dag().devices.push_back(device);
  const RankIndex rank = builder.add_rank({});
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return builder.buffer(rank, BufferKind::activation, DType::bf16, Shape(rows, columns));
  };
  const std::array reads{matrix(m, k), matrix(n, k)};
  const std::array writes{matrix(m, n)};
  builder.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, {.name = "gemm"}, reads, writes);
  return builder.finish();
}

std::string bound_of(const Dag& dag, TaskId id = 0) { return std::string(Bottlenecks(dag).of(id)); }

TEST(Bottlenecks, OfAKernelAreTheLargestTermOfItsRoofline) {
  // 2 m n k FLOPs, 2 (m k + n k + m n) bytes.
  EXPECT_EQ(bound_of(gemm_alone(one_of_each(), 1000, 1000, 1000)), "arithmetic");  // 2 s, 6 ms, 1 ms
  EXPECT_EQ(bound_of(gemm_alone(one_of_each(), 1, 1000, 1000)), "memory");         // 2 ms, 2.004 ms, 1 ms
  EXPECT_EQ(bound_of(gemm_alone(one_of_each(), 10, 10, 10)), "launch");            // 2 us, 0.6 us, 1 ms
}

TEST(Bottlenecks, OfAMeasuredDeviceAreThoseOfTheFittedOne) {
  // 25 MB, that is 25 ms. The arithmetic is stated to be no matter, but takes 172 ms where it was measured.
  FakeTimer timer([](const OpCost& cost) { return cost.flops / 100e9; });
  Device device = one_of_each();
  device.peak[static_cast<std::size_t>(DType::bf16)] = 1e18;
  EXPECT_EQ(bound_of(gemm_alone(device, 2048, 2048, 2048)), "memory");
  for (const std::int64_t size : {64, 1024, 2048}) {
    const TimedKernel kernel = gemm(size, size, size);
    device.measured.push_back({kernel, timer.time(kernel, 0)});
  }
  EXPECT_EQ(bound_of(gemm_alone(device, 2048, 2048, 2048)), "arithmetic");
}

TEST(Bottlenecks, AKernelOfNoWorkIsLaunched) {
  Device device = one_of_each();
  device.efficiency.launch = 0;
  EXPECT_EQ(bound_of(gemm_alone(device, 0, 0, 0)), "launch");
}

/// A transfer after a millisecond over an NVLink of 4 GB/s and a NIC of 1 GB/s, each crossed so often.
std::string bound_of_send(Bytes bytes, std::uint32_t nvlink_times, std::uint32_t nic_times) {
  SmallDag small;
  const LinkId nvlink = small.link(4e9), nic = small.link(1e9);
  const TaskId task = small.flow(bytes, {{nvlink, nvlink_times}, {nic, nic_times}}, 1e-3);
  Dag dag = small.finish();
  dag.links[nic].tier = Tier::nic;
  return bound_of(dag, task);
}

TEST(Bottlenecks, OfCommunicationAreLatencyOrTheNarrowestLink) {
  EXPECT_EQ(bound_of_send(2'000'000, 1, 1), "nic");    // 1 ms + 2 ms
  EXPECT_EQ(bound_of_send(999'999, 1, 1), "latency");  // 1 ms + 0.999999 ms
  EXPECT_EQ(bound_of_send(999'999, 5, 1), "nvlink");   // at 0.8 GB/s
  EXPECT_EQ(bound_of_send(2'000'000, 0, 1), "nic");    // crossed by the communicator's other paths alone
  EXPECT_EQ(bound_of_send(2'000'000'000, 0, 0), "latency");
  EXPECT_EQ(bound_of_send(0, 1, 1), "latency");
}

TEST(Bottlenecks, AProtocolSlowerThanTheLinkMakesTheTransferLonger) {
  SmallDag small(Architecture::hopper);
  const LinkId link = small.link(1e12);
  const auto slow = limited_flow(small, 10'000'000, {{link, 1}}, 1e9);
  const auto fast = limited_flow(small, 10'000'000, {{link, 1}}, 1e12);
  const Dag dag = small.finish();
  EXPECT_EQ(bound_of(dag, slow.task), "nvlink");   // 10 ms
  EXPECT_EQ(bound_of(dag, fast.task), "latency");  // 10 us, after that of NVLS
}

}  // namespace
}  // namespace tandem::sim::bottleneck_test
