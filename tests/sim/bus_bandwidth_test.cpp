// All-reduces simulated on the presets of DGX systems against those measured on the same hardware: tests/sim/data/.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>

#include "scenarios/load.h"
#include "scenarios/scenario.h"
#include "sim/simulate.h"
#include "tests/scenarios/base_scenario.h"
#include "tests/sim/small_dag.h"
#include "topology/layouts.h"

namespace tandem {
namespace {

struct Measurement {
  std::string gpu;
  std::uint32_t nodes = 1, ranks = 1;
  Bytes bytes = 0;
  Seconds time = 0;
};

std::vector<Measurement> measurements() {
  std::ifstream file(TANDEM_SOURCE_DIR "/tests/sim/data/nccl_all_reduce.csv");
  std::vector<Measurement> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#') || line.starts_with("gpu,")) continue;
    std::ranges::replace(line, ',', ' ');
    Measurement row;
    double microseconds = 0;
    std::istringstream(line) >> row.gpu >> row.nodes >> row.ranks >> row.bytes >> microseconds;
    row.time = microseconds * 1e-6;
    all.push_back(row);
  }
  return all;
}

ClusterSpec dgx(const std::string& gpu, std::uint32_t nodes) {
  ClusterSpec spec = parse_scenario(base_text(), "dgx", {"cluster.preset=dgx-" + gpu}).cluster;
  spec.gpus = spec.gpus_per_node * nodes;
  return spec;
}

Seconds simulated(const Measurement& measured) {
  const ClusterSpec spec = dgx(measured.gpu, measured.nodes);
  const Cluster cluster(spec);
  std::vector<std::uint32_t> gpus(measured.ranks);
  std::iota(gpus.begin(), gpus.end(), 0);
  SmallDag small(spec.gpu.architecture);
  for (const Link& link : cluster.links()) small.link(link.capacity);
  const Layout layout = lay_group(cluster, gpus, {.tree = true, .nvls = true});
  const TaskId task = small.all_reduce(small.rank(), small.communicator(measured.ranks, layout), measured.bytes);
  return simulate(small.finish()).timeline.end[task];
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

constexpr Bytes MiB = 1 << 20;

struct Errors {
  std::vector<double> small, large;  ///< of less than 1 MiB, and from there on
};

/// Absolute relative errors of the time, each printed with the bus bandwidths.
Errors errors_of(const std::string& gpu, std::uint32_t nodes, std::uint32_t ranks) {
  Errors errors;
  for (const Measurement& row : measurements()) {
    if (row.gpu != gpu || row.nodes != nodes || row.ranks != ranks) continue;
    const Seconds time = simulated(row);
    const double bus = 2.0 * (ranks - 1) / ranks * static_cast<double>(row.bytes) * 1e-9;
    const double error = time / row.time - 1;
    std::cout << fmt::format(
                     "{} x{:<4}{:>12} B  measured {:9.1f} us {:6.1f} GB/s  simulated {:9.1f} us {:6.1f} GB/s  {:+5.1f} %\n", gpu,
                     ranks, row.bytes, row.time * 1e6, bus / row.time, time * 1e6, bus / time, error * 100)
              << std::flush;  // or the next child prints it again
    (row.bytes < MiB ? errors.small : errors.large).push_back(std::abs(error));
  }
  return errors;
}

TEST(BusBandwidth, OfEightA100IsAsMeasured) {
  const Errors errors = errors_of("a100", 1, 8);
  ASSERT_EQ(errors.small.size(), 5U);
  ASSERT_EQ(errors.large.size(), 26U);
  EXPECT_LE(median(errors.small), 0.25);
  EXPECT_LE(median(errors.large), 0.10);
}

TEST(BusBandwidth, OfEightH100IsAsMeasured) {
  const Errors errors = errors_of("h100", 1, 8);
  ASSERT_EQ(errors.small.size(), 17U);
  ASSERT_EQ(errors.large.size(), 16U);
  EXPECT_LE(median(errors.small), 0.25);
  EXPECT_LE(median(errors.large), 0.10);
}

// Nothing was fitted to these but the bandwidth at 8 GiB. Below 1 MiB they were measured with PyTorch, whose launches cost more.
TEST(BusBandwidth, OfEightH200AndB200IsNear) {
  EXPECT_LE(median(errors_of("h200", 1, 8).large), 0.15);
  EXPECT_LE(median(errors_of("b200", 1, 8).large), 0.25);
}

TEST(BusBandwidth, OfFewerGpusIsNear) {
  for (const std::uint32_t ranks : {4U, 5U, 6U, 7U}) {
    EXPECT_LE(median(errors_of("h200", 1, ranks).large), 0.05);
    EXPECT_LE(median(errors_of("b200", 1, ranks).large), 0.05);
    EXPECT_LE(median(errors_of("a100", 1, ranks).large), 0.20);
  }
}

// NCCL had NVLS trees on the two nodes, and switches that add up on the eight: both are left out of the model.
TEST(BusBandwidth, OfSeveralH100NodesIsNear) {
  EXPECT_LE(median(errors_of("h100", 2, 16).large), 0.30);
  EXPECT_LE(median(errors_of("h100", 8, 64).large), 0.15);
}

}  // namespace
}  // namespace tandem
