#include <algorithm>
#include <chrono>
#include <stdexcept>

#include "runtime/contents/initial_values.h"
#include "runtime/dag_builder.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/host/kernel_timer.h"

namespace tandem {
namespace {

/// So many of the same collective in a row, among ranks that do nothing else.
Dag collectives_in_a_row(OpKind op, std::int32_t members, Bytes bytes, int count) {
  const std::int64_t part = std::max<std::int64_t>(1, bytes / size_of(DType::f32) / members);
  DagBuilder builder;
  builder.dag().devices.emplace_back();
  builder.dag().info.gpus = members;
  Communicator all{.name = "all", .axis = Axis::dp, .members = {}, .layout = {}};
  for (std::uint32_t member = 0; member < static_cast<std::uint32_t>(members); ++member) all.members.push_back(member);
  const CommunicatorId communicator = builder.add_communicator(std::move(all));
  for (std::uint32_t member = 0; member < static_cast<std::uint32_t>(members); ++member) {
    const RankIndex rank = builder.add_rank({.world_rank = member});
    const auto buffer = [&](std::int64_t parts) {
      return builder.buffer(rank, BufferKind::input, DType::f32, Shape(parts * part));
    };
    const BufferId whole = buffer(members);
    const BufferId other = op == OpKind::all_reduce ? whole : buffer(op == OpKind::all_to_all ? members : 1);
    const bool gathers = op == OpKind::all_gather;
    for (int i = 0; i < count; ++i) {
      builder.collective(op, communicator, {.name = "collective", .stream = Stream::dp}, gathers ? other : whole,
                         gathers ? whole : other);
    }
  }
  return builder.finish();
}

class HostCollectiveTimer final : public CollectiveTimer {
 public:
  std::vector<std::int32_t> members() const override { return {2, 4, 8}; }

  Timing time(OpKind op, std::int32_t members, Bytes bytes, Seconds budget) override {
    const auto begin = std::chrono::steady_clock::now();
    constexpr int in_a_row = 20;
    const Dag dag = collectives_in_a_row(op, members, bytes, in_a_row);
    HostMemory memory(dag, data_seed);
    std::vector<Seconds> samples;
    do {
      const Timeline timeline = execute(dag, *make_host_backend(memory));
      constexpr GroupId warm_up = 2;
      for (GroupId group = warm_up; group < dag.groups.size(); ++group)
        samples.push_back(std::max(timeline.duration(dag.members_of(group).front()), Seconds{1e-9}));
    } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < budget);
    return timing_of(std::move(samples));
  }
};

}  // namespace

std::unique_ptr<CollectiveTimer> make_host_collective_timer() { return std::make_unique<HostCollectiveTimer>(); }

}  // namespace tandem
