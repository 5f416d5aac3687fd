#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/dag/axis.h"
#include "runtime/dag/buffers.h"
#include "runtime/dag/device.h"
#include "runtime/dag/ids.h"
#include "runtime/dag/network.h"
#include "runtime/dag/software.h"
#include "runtime/dag/tasks.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// The members of one collective or transfer: they start together when all are ready, and end together.
struct Group {
  CommunicatorId communicator = 0;
  Bytes bytes = 0;  ///< the full vector: what is all-reduced, all of what is gathered, all that is scattered; one member's buffer
                    ///< in an all-to-all; a send's payload. Broadcast and reduce: the vector; gather and scatter: all that the
                    ///< root holds; barrier: nothing
  bool operator==(const Group&) const = default;
};

struct Communicator {
  std::string name;
  Axis axis = Axis::none;
  std::vector<std::uint32_t> members;  ///< world ranks, in ring order; {source, destination} for a pair
  Layout layout;
};

/// One lowered rank; in a folded DAG it stands for `count` ranks of the world.
struct Rank {
  std::uint32_t world_rank = 0;
  std::uint32_t count = 1;
  /// How many of these are on the mirrored stage, as far from the pipeline's end as `pp` is from its beginning: with two copies
  /// of the model (dualpipe) its ranks do the same, each with the other copy.
  std::uint32_t mirrored = 0;
  std::int32_t tp = 0, cp = 0, ep = 0, dp = 0, pp = 0;
  std::uint32_t device = 0;  ///< index into `Dag::devices`

  struct OfStage {
    std::int32_t stage = 0;
    std::uint32_t ranks = 0;  ///< none, where it stands for none of the stage
  };
  /// Those that it stands for, by stage of a pipeline of so many.
  std::array<OfStage, 2> by_stage(std::int32_t stages) const { return {{{pp, count - mirrored}, {stages - 1 - pp, mirrored}}}; }
};

/// Says where a parameter buffer's elements lie in the unsharded model: in a block of the (at most two-dimensional) tensor
/// `tensor`.
struct ParameterShard {
  BufferId buffer = 0;  ///< a view of exactly `rows * columns` elements
  std::string tensor;
  std::int64_t tensor_rows = 0, tensor_columns = 0;
  std::int64_t row = 0, column = 0, rows = 0, columns = 0;
  bool frozen = false;  ///< never updated
};

/// Says which tokens an input buffer [sequence, micro-batch] holds: sequences `first_sequence ...` of the global batch at
/// `positions`. Or what a buffer of any type holds that earlier steps have left: zeros, or noise that depends on `first_sequence`
/// and an element's place in the buffer alone.
struct InputShard {
  enum class Content : std::uint8_t {
    tokens,
    targets,
    positions,
    sequences,  ///< their numbers in the global batch
    zeros,
    noise
  };
  BufferId buffer = 0;
  Content content = Content::tokens;
  std::int64_t first_sequence = 0;
  Positions positions = {};
  std::int64_t vocabulary = 0;  ///< values lie in [0, vocabulary)
  std::int32_t ahead = 0;       ///< tokens and targets are those of so many positions later

  bool operator==(const InputShard&) const = default;
};

/// The documents that the sequences of the first step are packed of, and that attention ends with.
struct StepDocuments {
  std::int64_t count = 0;      ///< 0: each sequence is one
  std::int64_t padding = 0;    ///< tokens
  std::int64_t longest = 0;    ///< tokens
  double attention_share = 1;  ///< pairs of positions of one document, of those of one sequence
  // of these pairs, over the mean
  double heaviest_micro_batch = 1;
  double heaviest_replica = 1;
  double padding_flops_share = 0;  ///< model FLOPs of tokens that pad, of all
  // under dynamic context parallelism
  double heaviest_rank = 1;  ///< pairs of the heaviest context-parallel rank, over the mean
  double mean_ranks = 1;     ///< context-parallel ranks that share a token's document, on average
};

/// Facts about the whole DAG that a result needs and that no task carries.
struct StepInfo {
  std::string scenario;
  std::int64_t gpus = 0;
  std::int64_t tokens = 0;             ///< of a global batch
  Flops model_flops_per_token = 0;     ///< forward + backward, no recompute
  std::int64_t parameters = 0;         ///< of the unsharded model
  std::int64_t active_parameters = 0;  ///< that one token passes: without the experts that it does not go to
  std::int32_t steps = 1;              ///< of the optimizer, each on a global batch of its own
  std::int32_t micro_batches = 0;      ///< per data-parallel rank and step
  std::int32_t stages = 1;
  bool causal = true;  ///< attention, which counts at half then
  StepDocuments documents = {};
};

/// Holds which tasks wait for which, as compressed sparse rows. An edge u -> v means that v starts after u ended. Buffer
/// dependencies and stream order are edges alike.
class TaskGraph {
 public:
  using Edge = std::pair<TaskId, TaskId>;

  TaskGraph() = default;
  /// The successors of a task keep the order in which `edges` has them.
  TaskGraph(std::size_t tasks, std::span<const Edge> edges) { append(tasks, edges); }

  std::size_t tasks() const { return begin_.empty() ? 0 : begin_.size() - 1; }
  /// Adds so many tasks after those that there are, and edges between them alone. Throws std::logic_error where an edge begins at
  /// an earlier task.
  void append(std::size_t tasks, std::span<const Edge> edges);
  /// Adds the tasks of another graph after those that there are.
  void append(const TaskGraph& other);
  void reserve(std::size_t tasks, std::size_t edges);
  void clear();

  std::span<const TaskId> successors(TaskId id) const { return {targets_.data() + begin_[id], targets_.data() + begin_[id + 1]}; }
  /// Returns the successors of all tasks, those of task 0 first: one entry per edge.
  std::span<const TaskId> targets() const { return targets_; }

 private:
  std::vector<std::uint32_t> begin_;  ///< tasks + 1 offsets into `targets_`
  std::vector<TaskId> targets_;
};

/// One training step as tasks, or several in a row. Immutable once built; see `DagBuilder`.
struct Dag {
  StepInfo info;
  Software software;
  std::vector<Device> devices;
  std::vector<Rank> ranks;
  std::vector<Link> links;
  std::vector<Communicator> communicators;
  std::vector<std::string> names;
  std::vector<OpAttributes> attributes;
  Buffers buffers;
  std::vector<ParameterShard> shards;
  std::vector<InputShard> inputs;
  Tasks tasks;
  std::vector<Operand> operands;
  std::vector<Group> groups;
  std::vector<std::uint32_t> group_begin;  ///< groups.size() + 1 offsets into `group_tasks`
  std::vector<TaskId> group_tasks;
  TaskGraph graph;
  std::vector<TaskId> first_of_kernel;  ///< by kernel, the first task that runs it; see distinct_kernels.h

  std::span<const Operand> operands_of(TaskId id) const {
    const std::uint32_t end = id + 1 < tasks.size() ? tasks[id + 1].first_operand : static_cast<std::uint32_t>(operands.size());
    return {operands.data() + tasks[id].first_operand, operands.data() + end};
  }
  std::span<const TaskId> members_of(GroupId id) const {
    return {group_tasks.data() + group_begin[id], group_tasks.data() + group_begin[id + 1]};
  }
  /// Returns the tasks that start and end together with `id`: all members of its collective, or the kernel alone.
  std::span<const TaskId> unit_of(const TaskId& id) const {
    return tasks[id].group == no_id ? std::span<const TaskId>(&id, 1) : members_of(tasks[id].group);
  }
  const Communicator& communicator_of(const Task& task) const { return communicators[groups[task.group].communicator]; }
  const Device& device_of(const Task& task) const { return devices[ranks[task.rank].device]; }
  std::string_view name_of_task(TaskId id) const { return names[tasks[id].name]; }
};

/// Returns a compute task in the form in which kernels are timed. The task must not be communication.
TimedKernel kernel_of(const Dag& dag, TaskId id);

/// Returns the FLOPs and bytes of a kernel, zero for communication.
OpCost cost_of(const Dag& dag, TaskId id);

}  // namespace tandem
