#include "studies/calibrate/launched_collectives.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <fstream>
#include <limits>
#include <stdexcept>

#include "runtime/contents/initial_values.h"
#include "runtime/executor.h"
#include "runtime/launch/control_plane.h"
#include "runtime/launch/message.h"
#include "runtime/launch/rank_times.h"

namespace tandem::studies {
namespace {

using Clock = std::chrono::steady_clock;

/// What tells this machine from others: the number that Linux drew when it booted, whatever names containers have.
std::string machine_name() {
  std::string name;
  if (std::ifstream boot("/proc/sys/kernel/random/boot_id"); boot >> name) return name;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) throw std::runtime_error("this machine has no name");
  return host.data();
}

/// What a process must know of every other, by rank.
struct Places {
  std::vector<std::string> machines;
  Bytes least_memory = std::numeric_limits<Bytes>::max();
};

Places share_places(ControlPlane& control, const GpuInfo& own) {
  const std::vector<std::string> gathered =
      control.gather(PayloadWriter().text(machine_name()).number(static_cast<std::uint64_t>(own.memory)).bytes());
  std::string all;
  for (const std::string& place : gathered) all += place;
  all = control.broadcast(all);
  Places places;
  for (PayloadReader reader(all); !reader.at_end();) {
    places.machines.push_back(reader.text());
    places.least_memory = std::min(places.least_memory, static_cast<Bytes>(reader.number()));
  }
  return places;
}

/// The two buffers of a rank take an eighth of its GPU at most, for NCCL has its own.
LadderSizes sizes_for(Bytes memory) {
  constexpr Bytes buffers = 2, part = 8, largest = Bytes{1} << 30;
  return {.smallest = 1 << 12, .largest = std::min(largest, memory / part / buffers), .factor = 4};
}

/// Runs the ladder until rank 0 has spent the budget. The samples by collective, on rank 0.
std::vector<std::vector<Seconds>> run_ladder(ControlPlane& control, std::uint32_t rank, GpuStep& step,
                                             const CollectiveLadder& ladder, const LaunchedMeasurement& measurement) {
  const Clock::time_point begin = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::vector<std::vector<Seconds>> samples(ladder.timed.size());
  constexpr const char* again = "again";
  for (int run = 0;; ++run) {
    if (rank == 0 && measurement.progress)
      measurement.progress(run == 0 ? "collectives, to warm up" : fmt::format("collectives, run {}", run),
                           std::min(1.0, spent() / std::max(measurement.budget, 1e-9)));
    control.barrier();
    const std::vector<std::string> all = control.gather(own_times(ladder.dag, rank, execute(ladder.dag, step)));
    const bool warms_up = run == 0;
    if (rank == 0 && !warms_up) {
      const std::vector<std::vector<Seconds>> found = samples_of(ladder, times_of_all(ladder.dag, all));
      for (std::size_t i = 0; i < found.size(); ++i) samples[i].insert(samples[i].end(), found[i].begin(), found[i].end());
    }
    if (control.broadcast(warms_up || spent() < measurement.budget ? again : "enough") != again) return samples;
  }
}

}  // namespace

std::string text_of(const std::string& gpu, const MachineRanks& machines) {
  std::size_t all = 0, fewest = std::numeric_limits<std::size_t>::max(), most = 0;
  for (const std::vector<std::uint32_t>& ranks : machines) {
    all += ranks.size();
    fewest = std::min(fewest, ranks.size());
    most = std::max(most, ranks.size());
  }
  std::string gpus = fmt::format("{} x {}", all, gpu);
  if (machines.size() == 1) return gpus;
  return fmt::format("{} on {} machines of {}", gpus, machines.size(),
                     fewest == most ? fmt::format("{}", most) : fmt::format("{} to {}", fewest, most));
}

std::optional<LaunchedCollectives> measure_with_others(const Launch& launch, const LaunchedMeasurement& measurement) {
  CollectiveLadder ladder;  // before the control plane, which names its tasks to the end
  std::atomic<bool> is_made = false;
  const auto name = [&](std::uint32_t task) { return is_made ? std::string(ladder.dag.name_of_task(task)) : std::string(); };
  ControlPlane control(launch, control_options(launch.limits, name));
  LaunchedCollectives result;
  control.run([&] {
    if (launch.rank == 0 && measurement.begin) measurement.begin();
    result.gpu = open_gpu(static_cast<int>(launch.local_rank));
    const GpuInfo info = result.gpu->info();
    control.agree("model of GPU", info.name);
    const Places places = share_places(control, info);
    const MachineRanks machines = ranks_by_machine(places.machines);
    result.device = text_of(info.name, machines);
    result.collectives = collectives_worth_measuring(machines, sizes_for(places.least_memory));
    ladder = make_collective_ladder(result.collectives, machines, DType::bf16);
    is_made = true;
    const std::unique_ptr<GpuStep> step =
        result.gpu->make_step(ladder.dag, {.control = &control, .launch = &launch, .graphs = GraphScope::full});
    step->fill(data_seed);
    std::vector<std::vector<Seconds>> samples = run_ladder(control, launch.rank, *step, ladder, measurement);
    step->close();
    if (launch.rank != 0) return;
    for (std::size_t i = 0; i < samples.size(); ++i) result.collectives[i].timing = timing_of(std::move(samples[i]));
  });
  if (launch.rank != 0) return std::nullopt;
  return result;
}

}  // namespace tandem::studies
