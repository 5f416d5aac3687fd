#pragma once

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/dag/access_order.h"
#include "runtime/dag/dag.h"
#include "runtime/dag/distinct_kernels.h"

namespace tandem {

/// Everything that labels a task, apart from its operands.
struct TaskLabels {
  std::string_view name;  ///< shown in timelines: "qkv", "attention", "mlp down"
  Phase phase = Phase::forward;
  Stream stream = Stream::compute;
  std::int32_t micro_batch = -1;
  std::int16_t layer = -1;
  std::int16_t chunk = -1;
};

/// A task names a buffer of which no accesses are noted (`DagBuilder::buffer_like`).
class UntrackedBuffer : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// What a task that is like an earlier one waits for, as far as that is known.
struct KnownOrder {
  std::span<const TaskId> waits = {};  ///< on other streams, for what they do to some of its operands
  std::uint32_t operands = 0;          ///< a bit for each that is one of these
};

/// Builds a DAG task by task, rank by rank. Within a rank, tasks must come in an order that respects their data: dependencies
/// follow from it.
///
/// - A task depends on others by what they read and write (access_order.h).
/// - A task depends on the task before it on its rank's stream.
/// - The n-th collective that a rank lowers on a communicator joins the n-th of every other member present in the DAG; sends and
///   receives are counted apart, so the n-th send on a pair meets the n-th receive.
///
/// Several threads can build a DAG, each a part of its own at a time. Appended one after the other in the order of ranks, parts
/// make the same DAG as one builder that all was added to.
class DagBuilder {
 public:
  DagBuilder() { forget_last_attributes(); }
  /// Returns a builder of a part of `whole`, which knows its ranks and communicators. While it is in use the whole stays where it
  /// is, and gets no more of them.
  static DagBuilder part_of(const DagBuilder& whole);

  Dag& dag() { return dag_; }
  const Dag& dag() const { return dag_; }

  RankIndex add_rank(const Rank& rank);
  CommunicatorId add_communicator(Communicator communicator);

  BufferId buffer(RankIndex rank, BufferKind kind, DType dtype, const Shape& shape, Scaling scaling = Scaling::none);
  /// Makes a view of the elements [offset, offset + shape.elements()) of `of`, which may be a view itself.
  BufferId view(BufferId of, std::int64_t offset, const Shape& shape);

  TaskId kernel(OpKind op, const OpAttributes& attributes, const TaskLabels& labels, std::span<const BufferId> reads,
                std::span<const BufferId> writes, std::span<const BufferId> updates = {});

  /// Adds what an earlier buffer of the same rank is: a view of `base`, or where this is the id that it gets a buffer of its own,
  /// of which no accesses are noted. Who adds a task on it says what that waits for. Another task on it throws UntrackedBuffer.
  BufferId buffer_like(BufferId earlier, BufferId base);
  /// Adds what an earlier task of the same rank is, for another micro-batch and on other buffers of the same types: those that
  /// are in the places of its operands.
  TaskId task_like(TaskId earlier, std::int32_t micro_batch, std::span<const BufferId> buffers, const KnownOrder& known);

  /// all_reduce: `in` is updated in place and `out` is the same buffer. all_gather: the shard, the whole. reduce_scatter: the
  /// whole, the shard. all_to_all: parts by destination, parts by source, equally large and in the members' order. send: `in`
  /// alone; receive: `out` alone; pass `no_id` for the other. copy: one
  /// member alone, from `in` to `out`. `sent`: the group's bytes, where they are not the buffers', as
  /// those that are cast on the way, or that another collective carries.
  TaskId collective(OpKind op, CommunicatorId communicator, const TaskLabels& labels, BufferId in, BufferId out,
                    Reduction reduction = Reduction::sum, std::optional<Bytes> sent = {});

  /// A collective with a root, the member `root` of the communicator. `whole`: the vector of broadcast and reduce, on every
  /// member, sent or replaced by the result on the root; what the root gathers or scatters, and `no_id` elsewhere. `part`: a
  /// member's part of what is gathered or scattered, on the root too, where it may lie in its place of the whole.
  TaskId rooted_collective(OpKind op, CommunicatorId communicator, const TaskLabels& labels, std::uint32_t root, BufferId whole,
                           BufferId part = no_id, Reduction reduction = Reduction::sum);

  /// Adds a barrier, which ends when the last member has come.
  TaskId barrier(RankIndex rank, CommunicatorId communicator, const TaskLabels& labels);

  /// Adds an ordering that no buffer shows, such as that of a receive which is posted one step ahead.
  void depend(TaskId before, TaskId after);

  /// Returns the last task lowered on this rank and stream, `no_id` before the first.
  TaskId last_on(RankIndex rank, Stream stream) const;

  /// Says that no later task waits for one so far or touches the same buffer, as when a rank is complete: what ordered them is
  /// forgotten. Tasks that do all the same throw std::logic_error, at the latest in `finish`.
  void end_rank();
  /// Appends a part whose ranks are complete, and empties it for another. Throws std::logic_error when its members of collectives
  /// disagree with others on the size.
  void append(DagBuilder& part);
  /// Does not empty it.
  void append_and_keep(DagBuilder& part) { append_ended(part, nullptr); }
  /// Another rank, that does what the one of a part does.
  struct LikeRank {
    RankIndex rank = 0;
    std::vector<CommunicatorId> communicator;  ///< by that of the part's rank
    const DagBuilder* declared = nullptr;      ///< a part with no tasks and the rank's own of the buffers that come first
  };
  /// Appends a part that was kept once more, as another rank's. What inputs hold is not told, and attributes are those of the
  /// part's rank.
  void append_as(DagBuilder& part, const LikeRank& like) { append_ended(part, &like); }

  /// Makes room for so many more ranks, each with about as much as `like` has. Makes none where what there is may do.
  void reserve_for(std::size_t more, const DagBuilder& like);

  /// Completes the DAG. Throws std::logic_error when a collective lacks a member that another one on its communicator has.
  Dag finish();

 private:
  static constexpr std::size_t phase_count = static_cast<std::size_t>(Phase::optimizer) + 1;
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  /// How often a rank has called so far, by whether it received.
  using CallCounts = std::array<std::uint32_t, 2>;
  struct Calls {
    std::vector<GroupId> groups;   ///< by call
    RankIndex last_rank = no_id;   ///< that called
    CallCounts of_last_rank = {};  ///< the others' are among `calls_of_others_`
  };

  const DagBuilder* whole_ = nullptr;  ///< of a part
  Dag dag_;
  std::size_t ended_tasks_ = 0, ended_buffers_ = 0;  ///< of complete ranks
  KernelNumbers kernels_;
  AccessOrder accesses_;  ///< by base buffer, after those of complete ranks
  std::vector<std::array<TaskId, stream_count>> last_on_stream_;
  std::vector<std::pair<TaskId, TaskId>> edges_;  ///< to tasks after those of complete ranks
  std::vector<TaskId> before_;                    ///< of the task being added
  std::unordered_map<std::string, std::uint16_t, TextHash, std::equal_to<>> name_ids_;
  std::map<OpAttributes, std::uint32_t> attribute_ids_;
  /// By operation and phase: its next task often has the same; `no_id`: none.
  std::array<std::array<std::uint32_t, phase_count>, op_kind_count> last_attributes_;
  /// By where a text lies and how long it is: most names are texts of the program.
  std::array<std::uint16_t, 256> recent_names_ = {};
  std::vector<Calls> calls_;                                       ///< by communicator
  std::unordered_map<std::uint64_t, CallCounts> calls_of_others_;  ///< by communicator and rank

  const std::vector<Rank>& ranks() const { return (whole_ != nullptr ? whole_->dag_ : dag_).ranks; }
  const std::vector<Communicator>& communicators() const { return (whole_ != nullptr ? whole_->dag_ : dag_).communicators; }
  TaskId add_task(Task task, std::span<const Operand> operands);
  /// Adds the operands of the last task, which is this one, and what it waits for.
  void add_order(const Task& task, std::span<const Operand> operands, const KnownOrder& known = {});
  TaskId join(OpKind op, CommunicatorId communicator, const TaskLabels& labels, RankIndex rank, Bytes bytes,
              std::span<const Operand> operands, const ReductionAttributes& attributes);
  std::uint32_t next_call(CommunicatorId communicator, RankIndex rank, bool receives);
  /// Returns the group of a call, of which all members must have as many bytes.
  GroupId group_of(CommunicatorId communicator, std::uint32_t call, Bytes bytes);
  /// Returns the groups that those of a part are among all.
  std::vector<GroupId> groups_of(DagBuilder& part, const LikeRank* like);
  void append_ended(DagBuilder& part, const LikeRank* like);
  void append_tasks(DagBuilder& part, const LikeRank* like);
  /// Returns what the tasks of a part differ in (`Tasks::kinds`) as it is here, where its buffers are already. To be asked before
  /// its tasks and operands are.
  std::vector<Task> kinds_of(const DagBuilder& part, BufferId first_buffer, const LikeRank* like);
  void append_shards(const Dag& of, BufferId first_buffer);
  void clear();
  void order_by_access(TaskId task, Stream stream, const Operand& operand);
  std::uint16_t name_id(std::string_view name);
  std::uint32_t attribute_id(OpKind op, Phase phase, const OpAttributes& attributes);
  void forget_last_attributes() {
    for (auto& of_op : last_attributes_) of_op.fill(no_id);
  }
  void group_tasks_by_collective();
};

}  // namespace tandem
