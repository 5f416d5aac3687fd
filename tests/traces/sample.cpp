#include "tests/traces/sample.h"

#include <array>
#include <string>
#include <utility>

#include "runtime/dag/dag_builder.h"

namespace tandem::traces {
namespace {

constexpr std::int64_t rows = 16, width = 32;

/// Starts each task when all before it ended, and each group when all its members may.
Timeline schedule(const Dag& dag) {
  const std::size_t count = dag.tasks.size();
  Timeline timeline{std::vector<Seconds>(count, 0), std::vector<Seconds>(count, 0)};
  std::vector<std::uint32_t> waits(count, 0);
  for (TaskId u = 0; u < count; ++u) {
    for (const TaskId v : dag.graph.successors(u)) ++waits[v];
  }
  std::vector<std::size_t> members_waiting;
  for (GroupId g = 0; g < dag.groups.size(); ++g) members_waiting.push_back(dag.members_of(g).size());

  std::vector<TaskId> ready;
  for (TaskId id = 0; id < count; ++id) {
    if (waits[id] == 0) ready.push_back(id);
  }
  while (!ready.empty()) {
    const TaskId id = ready.back();
    ready.pop_back();
    std::vector<TaskId> unit{id};
    if (const GroupId group = dag.tasks[id].group; group != no_id) {
      if (--members_waiting[group] > 0) continue;
      unit.assign(dag.members_of(group).begin(), dag.members_of(group).end());
    }
    Seconds start = 0;
    for (const TaskId member : unit) start = std::max(start, timeline.start[member]);
    const Seconds end = start + (1 + id % 7) * 1e-6 / 3;
    for (const TaskId member : unit) {
      timeline.start[member] = start;
      timeline.end[member] = end;
      for (const TaskId next : dag.graph.successors(member)) {
        timeline.start[next] = std::max(timeline.start[next], end);
        if (--waits[next] == 0) ready.push_back(next);
      }
    }
  }
  return timeline;
}

class PipelineBuilder {
 public:
  PipelineBuilder(int stages, int replicas) : stages_(stages), replicas_(replicas) {
    builder_.dag().info.gpus = std::int64_t{stages} * replicas;
    builder_.dag().info.stages = stages;
    builder_.dag().devices.resize(1);
    for (int stage = 0; stage < stages; ++stage) {
      for (int replica = 0; replica < replicas; ++replica) {
        builder_.add_rank({.world_rank = world(stage, replica), .dp = replica, .pp = stage});
      }
    }
    for (int stage = 0; stage < stages; ++stage) {
      Communicator data_parallel{.name = "dp of stage " + std::to_string(stage), .axis = Axis::dp, .members = {}, .layout = {}};
      for (int replica = 0; replica < replicas; ++replica) data_parallel.members.push_back(world(stage, replica));
      dp_.push_back(builder_.add_communicator(std::move(data_parallel)));
    }
    for (int stage = 0; stage + 1 < stages; ++stage) {
      for (int replica = 0; replica < replicas; ++replica) {
        forward_.push_back(pair(world(stage, replica), world(stage + 1, replica)));
        backward_.push_back(pair(world(stage + 1, replica), world(stage, replica)));
      }
    }
  }

  void lower(int stage, int replica, int micro_batches) {
    const RankIndex rank = world(stage, replica);
    const std::size_t after = static_cast<std::size_t>(stage) * replicas_ + replica;  // the pair to the next stage
    const BufferId weight = builder_.buffer(rank, BufferKind::parameter, DType::bf16, Shape(width, width));
    const BufferId gradient = builder_.buffer(rank, BufferKind::gradient, DType::f32, Shape(width, width));
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const BufferId in = activation(rank), out = activation(rank);
      if (stage > 0) {
        transfer(OpKind::receive, forward_[after - replicas_], "receive", Phase::forward, Stream::pp_receive_forward, micro_batch,
                 in);
      }
      builder_.kernel(OpKind::gemm, GemmAttributes{}, labels("mlp up", Phase::forward, Stream::compute, micro_batch),
                      std::array{in, weight}, std::array{out});
      if (stage + 1 < stages_) {
        transfer(OpKind::send, forward_[after], "send", Phase::forward, Stream::pp_send_forward, micro_batch, out);
      }
    }
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const BufferId out = activation(rank), in = activation(rank);
      if (stage + 1 < stages_) {
        transfer(OpKind::receive, backward_[after], "receive", Phase::backward_input, Stream::pp_receive_backward, micro_batch,
                 out);
      }
      builder_.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true},
                      labels("mlp up dx", Phase::backward_input, Stream::compute, micro_batch), std::array{out, weight},
                      std::array{in});
      builder_.kernel(OpKind::gemm, GemmAttributes{.transpose_a = true, .accumulate = true},
                      labels("mlp up dw", Phase::backward_weight, Stream::compute, micro_batch), std::array{out, in}, {},
                      std::array{gradient});
      if (stage > 0) {
        transfer(OpKind::send, backward_[after - replicas_], "send", Phase::backward_input, Stream::pp_send_backward, micro_batch,
                 in);
      }
    }
    builder_.collective(OpKind::all_reduce, dp_[stage], labels("gradients", Phase::optimizer, Stream::dp, -1), gradient,
                        gradient);
  }

  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;
  int stages_, replicas_;
  std::vector<CommunicatorId> dp_, forward_, backward_;

  std::uint32_t world(int stage, int replica) const { return static_cast<std::uint32_t>(stage * replicas_ + replica); }
  CommunicatorId pair(std::uint32_t from, std::uint32_t to) {
    return builder_.add_communicator({.name = "pp " + std::to_string(from) + " to " + std::to_string(to),
                                      .axis = Axis::pp,
                                      .members = {from, to},
                                      .layout = {}});
  }
  BufferId activation(RankIndex rank) { return builder_.buffer(rank, BufferKind::activation, DType::bf16, Shape(rows, width)); }
  static TaskLabels labels(std::string_view name, Phase phase, Stream stream, std::int32_t micro_batch) {
    return {.name = name, .phase = phase, .stream = stream, .micro_batch = micro_batch, .layer = 0, .chunk = 0};
  }
  void transfer(OpKind op, CommunicatorId pair, std::string_view name, Phase phase, Stream stream, int micro_batch,
                BufferId buffer) {
    builder_.collective(op, pair, labels(name, phase, stream, micro_batch), op == OpKind::send ? buffer : no_id,
                        op == OpKind::receive ? buffer : no_id);
  }
};

}  // namespace

Sample pipeline_sample(int stages, int replicas, int micro_batches) {
  PipelineBuilder pipeline(stages, replicas);
  for (int stage = 0; stage < stages; ++stage) {
    for (int replica = 0; replica < replicas; ++replica) pipeline.lower(stage, replica, micro_batches);
  }
  Sample sample{pipeline.finish(), {}};
  sample.timeline = schedule(sample.dag);
  return sample;
}

Sample kernels_at(const std::vector<std::pair<Seconds, Seconds>>& times) {
  DagBuilder builder;
  builder.dag().devices.resize(1);
  const RankIndex rank = builder.add_rank({});
  Sample sample;
  for (const auto& [start, end] : times) {
    const BufferId a = builder.buffer(rank, BufferKind::activation, DType::bf16, Shape(2, 4));
    const BufferId b = builder.buffer(rank, BufferKind::activation, DType::bf16, Shape(4, 8));
    const BufferId c = builder.buffer(rank, BufferKind::activation, DType::bf16, Shape(2, 8));
    builder.kernel(OpKind::gemm, GemmAttributes{}, {.name = "gemm", .layer = 3}, std::array{a, b}, std::array{c});
    sample.timeline.start.push_back(start);
    sample.timeline.end.push_back(end);
  }
  sample.dag = builder.finish();
  return sample;
}

}  // namespace tandem::traces
