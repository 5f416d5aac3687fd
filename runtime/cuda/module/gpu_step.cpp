#include "runtime/cuda/module/gpu_step.h"

#include <nvtx3/nvToolsExt.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/analysis/distinct_collectives.h"
#include "runtime/base/divide_up.h"
#include "runtime/cuda/module/cuda_graph.h"
#include "runtime/cuda/module/gpu_contents.h"
#include "runtime/cuda/module/nccl_world.h"
#include "runtime/cuda/module/read_back.h"
#include "runtime/cuda/module/say_once.h"
#include "runtime/cuda/module/step_load.h"
#include "runtime/cuda/module/streams.h"
#include "runtime/cuda/module/verify_collective.h"
#include "runtime/cuda/module/virtual_collective.h"
#include "runtime/host/verify_collectives.h"
#include "runtime/plan/arena.h"
#include "runtime/plan/issue_order.h"
#include "runtime/plan/waits.h"

namespace tandem {
namespace {

/// The bytes that a buffer of fp8 takes behind its elements, for the scale.
constexpr Bytes bytes_of_scale = arena_alignment;

Bytes aligned(Bytes bytes) { return round_up(bytes, arena_alignment); }

Bytes bytes_on_gpu(const Buffer& buffer) { return aligned(buffer.bytes()) + (buffer.dtype == DType::f8 ? bytes_of_scale : 0); }

/// A range of the host's time in Nsight Systems, which shows the kernels that were issued in it under its name.
class NamedRange {
 public:
  explicit NamedRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
  NamedRange(const NamedRange&) = delete;
  ~NamedRange() { nvtxRangePop(); }
};

/// Kernels of one stream that are launched as one graph, captured before the first run.
struct CapturedPiece {
  GraphPiece tasks;
  CudaGraph graph;
};

/// The events of one unit, which are made once and recorded in every run.
struct UnitEvents {
  std::optional<Event> ended;                      ///< for those who wait
  std::optional<Event> began_at, ended_at;         ///< dates
  std::vector<std::pair<RankIndex, Event>> ready;  ///< of a virtual collective: the other members' streams are there
};

class Step final : public GpuStep {
 public:
  Step(const Dag& dag, const GpuStepOptions& options, int multiprocessors)
      : dag_(dag),
        options_(options),
        order_(issue_order(dag)),
        arena_(plan_arena(dag, order_, bytes_on_gpu)),
        waits_(dag, order_, arena_.waits),
        multiprocessors_(multiprocessors),
        piece_of_(dag.tasks.size(), no_piece) {
    if (options.control == nullptr && dag.ranks.size() > most_virtual_ranks)
      throw std::runtime_error(std::to_string(dag.ranks.size()) + " ranks on one GPU, expected at most " +
                               std::to_string(most_virtual_ranks) + "; more take a process and a GPU each (see torchrun, srun)");
    if (options.control != nullptr) {
      barrier_memory_ = GpuMemory(sizeof(std::int32_t));
      nccl_ = make_nccl_world(*options.control, *options.launch, dag, barrier_memory_.data());
    }
    allocate();
    make_pieces();
    make_queues();
    prepare_kernels();
    make_events();
  }

  ~Step() override { cudaDeviceSynchronize(); }

  bool is_started_ahead() const override { return true; }
  void prepare(const Dag& dag, Completions& completions) override;
  void start(std::span<const TaskId> unit) override;
  void drive() override;

  void fill(std::uint64_t seed) override;
  void read(BufferId id, const HostTensor& out) override;
  std::size_t verify_collectives() override;
  Bytes arena(RankIndex rank) const override { return arena_.size[rank]; }
  void date_tasks(bool dates) override {
    if (dates != dates_) {
      pieces_are_captured_ = false;
      graph_ = {};
    }
    dates_ = dates;
  }
  Seconds duration() const override { return end_->seconds_since(*begin_); }
  std::size_t runs_of_mean() const override;
  GraphCount graphs() const override;
  void close() override;

 private:
  const Dag& dag_;
  const GpuStepOptions options_;
  const std::vector<TaskId> order_;
  const ArenaPlan arena_;
  const WaitPlan waits_;
  const int multiprocessors_;
  GpuMemory barrier_memory_;
  std::vector<std::unique_ptr<OwnedQueue>> queues_;  ///< by rank and stream, where there are tasks
  std::unique_ptr<OwnedQueue> origin_;               ///< where a step begins and ends
  std::unique_ptr<NcclWorld> nccl_;                  ///< or all ranks are virtual
  std::unique_ptr<NcclMemory> own_memory_;           ///< of the rank that runs here; or
  std::vector<GpuMemory> memory_;                    ///< by rank
  std::vector<std::byte*> arena_begin_;              ///< by rank; null: runs elsewhere
  std::vector<UnitEvents> events_;                   ///< by first task of a unit
  std::optional<Event> begin_, end_, fork_;          ///< of the step
  std::optional<Event> launched_;                    ///< where the whole step is a graph, before it
  std::vector<Event> joins_;                         ///< by queue
  static constexpr std::size_t no_piece = -1;
  std::vector<CapturedPiece> pieces_;
  std::vector<std::size_t> piece_of_;  ///< by task, into `pieces_`
  bool pieces_are_captured_ = false;
  bool dates_ = true;
  std::optional<Capture> capture_;  ///< of the whole step, while it is issued
  CudaGraph graph_;                 ///< of the whole step
  std::optional<StepLoad> load_;    ///< where a step takes so long that clocks change
  bool ran_ = false;
  bool filled_ = false;      ///< since the last run: clocks rose meanwhile
  bool relaunches_ = false;  ///< the graph of the run before, with no task issued
  Completions* completions_ = nullptr;

  bool is_here(RankIndex rank) const { return options_.control == nullptr || rank == options_.launch->rank; }
  std::size_t queue_index(const Task& task) const { return task.rank * stream_count + static_cast<std::size_t>(task.stream); }
  Queue& queue_of(TaskId id) { return queues_[queue_index(dag_.tasks[id])]->get(); }

  void allocate();
  bool is_one_graph() const { return options_.graphs == GraphScope::full; }
  void make_pieces();
  void capture_pieces();
  void start_piece(TaskId id);
  void issue(std::span<const TaskId> unit, const std::vector<TaskId>& here);
  std::vector<std::size_t> scratch_of_queues() const;
  void make_queues();
  void prepare_kernels();
  void make_events();
  DeviceTensor tensor(BufferId id) const;
  std::vector<OperandType> types_of(TaskId id) const;
  std::vector<TaskId> members_here(std::span<const TaskId> unit) const;
  void run_kernel(TaskId id);
  void run_unit_of_virtual_ranks(std::span<const TaskId> unit);
  void join();
  void launch_graph();
  void load();
  void verify_between_processes(TaskId id);
  void verify_in_own_type(GroupId group);
  void wait_for(const Queue& queue, const char* what, const std::function<void()>& report);
  void report_first_that_runs(std::size_t& at);
};

void Step::allocate() {
  arena_begin_.resize(dag_.ranks.size(), nullptr);
  if (nccl_ != nullptr) {
    const RankIndex rank = options_.launch->rank;
    own_memory_ = nccl_->allocate(static_cast<std::size_t>(arena_.size[rank]));
    arena_begin_[rank] = own_memory_->data();
    return;
  }
  for (RankIndex rank = 0; rank < dag_.ranks.size(); ++rank) {
    try {
      arena_begin_[rank] = memory_.emplace_back(static_cast<std::size_t>(arena_.size[rank])).data();
    } catch (const std::runtime_error& error) {
      cudaGetLastError();
      throw std::runtime_error("the buffers of rank " + std::to_string(dag_.ranks[rank].world_rank) +
                               " do not fit: " + error.what());
    }
  }
}

std::vector<OperandType> Step::types_of(TaskId id) const {
  std::vector<OperandType> types;
  for (const Operand& operand : dag_.operands_of(id)) {
    const Buffer& buffer = dag_.buffers[operand.buffer];
    types.push_back({buffer.shape, buffer.dtype});
  }
  return types;
}

std::vector<std::size_t> Step::scratch_of_queues() const {
  std::vector<std::size_t> scratch(dag_.ranks.size() * stream_count, 0);
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    const Task& task = dag_.tasks[id];
    if (!is_here(task.rank) || is_communication(task.op)) continue;
    if (const DeviceOperation& operation = device_operation(task.op); operation.scratch != nullptr)
      scratch[queue_index(task)] =
          std::max(scratch[queue_index(task)], operation.scratch(types_of(id), dag_.attributes[task.attributes]));
  }
  return scratch;
}

void Step::make_queues() {
  const std::vector<std::size_t> scratch = scratch_of_queues();
  std::vector<bool> used(scratch.size(), false);
  for (const Task& task : dag_.tasks)
    if (is_here(task.rank)) used[queue_index(task)] = true;
  queues_.resize(scratch.size());
  for (std::size_t i = 0; i < scratch.size(); ++i) {
    if (!used[i]) continue;
    const bool computes = i % stream_count == static_cast<std::size_t>(Stream::compute);
    queues_[i] = std::make_unique<OwnedQueue>(multiprocessors_, scratch[i], computes ? Urgency::usual : Urgency::first);
    joins_.emplace_back(false);
  }
  origin_ = std::make_unique<OwnedQueue>(multiprocessors_, 0);
  begin_.emplace(true);
  end_.emplace(true);
  fork_.emplace(false);
  launched_.emplace(true);
}

void Step::prepare_kernels() {
  std::set<std::tuple<OpKind, std::uint32_t, std::vector<std::tuple<DType, std::vector<std::int64_t>>>>> done;
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    const Task& task = dag_.tasks[id];
    if (!is_here(task.rank) || is_communication(task.op) || device_operation(task.op).prepare == nullptr) continue;
    const std::vector<OperandType> types = types_of(id);
    std::vector<std::tuple<DType, std::vector<std::int64_t>>> key;
    for (const OperandType& type : types) {
      key.emplace_back(type.dtype, std::vector<std::int64_t>());
      for (std::size_t d = 0; d < type.shape.rank; ++d) std::get<1>(key.back()).push_back(type.shape[d]);
    }
    if (done.emplace(task.op, task.attributes, std::move(key)).second)
      device_operation(task.op).prepare(queue_of(id), types, dag_.attributes[task.attributes]);
  }
  // A product whose algorithms all failed in a trial may be computed in another type, with copies.
  const std::vector<std::size_t> scratch = scratch_of_queues();
  for (std::size_t i = 0; i < scratch.size(); ++i)
    if (queues_[i]) queues_[i]->reserve(scratch[i]);
}

std::vector<TaskId> Step::members_here(std::span<const TaskId> unit) const {
  std::vector<TaskId> here;
  for (const TaskId id : unit)
    if (is_here(dag_.tasks[id].rank)) here.push_back(id);
  return here;
}

void Step::make_events() {
  events_.resize(dag_.tasks.size());
  for (const TaskId first : order_) {
    const std::vector<TaskId> here = members_here(dag_.unit_of(first));
    if (here.empty()) continue;
    UnitEvents& events = events_[first];
    bool awaited = here.size() > 1;
    for (const TaskId id : here) awaited = awaited || waits_.is_awaited(id);
    if (awaited) events.ended.emplace(false);
    for (std::size_t m = 1; m < here.size(); ++m) events.ready.emplace_back(dag_.tasks[here[m]].rank, Event(false));
    events.began_at.emplace(true);
    events.ended_at.emplace(true);
  }
}

DeviceTensor Step::tensor(BufferId id) const {
  const Buffer& buffer = dag_.buffers[id];
  const Buffer& base = dag_.buffers[buffer.base];
  if (!is_here(base.rank)) return {.data = nullptr, .shape = buffer.shape, .dtype = buffer.dtype};
  std::byte* const begin = arena_begin_[base.rank] + arena_.offset[buffer.base];
  return {.data = begin + buffer.offset * size_of(base.dtype),
          .shape = buffer.shape,
          .dtype = buffer.dtype,
          .scale = base.dtype == DType::f8 ? reinterpret_cast<float*>(begin + aligned(base.bytes())) : nullptr};
}

void Step::make_pieces() {
  for (GraphPiece& tasks : graph_pieces(dag_, order_, waits_, options_.graphs)) {
    if (!is_here(dag_.tasks[tasks.front()].rank)) continue;
    for (const TaskId id : tasks) piece_of_[id] = pieces_.size();
    pieces_.push_back({.tasks = std::move(tasks), .graph = {}});
  }
}

/// The graphs are captured once and launched in every run: memory stays where it is.
void Step::capture_pieces() {
  for (CapturedPiece& piece : pieces_) {
    const Queue& queue = queue_of(piece.tasks.front());
    Capture capture(queue);
    for (const TaskId id : piece.tasks) {
      if (dates_) events_[id].began_at->record(queue, true);
      run_kernel(id);
      if (dates_) events_[id].ended_at->record(queue, true);
    }
    piece.graph = capture.finish();
  }
  pieces_are_captured_ = true;
}

GraphCount Step::graphs() const {
  if (is_one_graph()) return {.graphs = 1, .nodes = graph_.nodes()};
  GraphCount count;
  for (const CapturedPiece& piece : pieces_) {
    ++count.graphs;
    count.nodes += piece.graph.nodes();
  }
  return count;
}

void Step::close() {
  cudaDeviceSynchronize();
  pieces_.clear();
  graph_ = {};  // communicators wait until no graph holds their kernels
  own_memory_.reset();
  arena_begin_.clear();
  if (nccl_ != nullptr) nccl_->close();
  nccl_.reset();
}

void Step::prepare(const Dag& dag, Completions& completions) {
  if (&dag != &dag_) throw std::logic_error("the GPU's memory belongs to another DAG");
  completions_ = &completions;
  if (!pieces_are_captured_) capture_pieces();
  if (!is_one_graph()) {
    load();
    check(cudaStreamSynchronize(origin_->get().stream), "the load before the step");
  }
  relaunches_ = graph_.exists();
  if (relaunches_) return;
  if (is_one_graph()) capture_.emplace(origin_->get());
  begin_->record(origin_->get(), is_one_graph());
  fork_->record(origin_->get(), is_one_graph());
  for (const auto& queue : queues_)
    if (queue) fork_->awaited_by(queue->get());
}

void Step::start(std::span<const TaskId> unit) {
  const std::vector<TaskId> here = members_here(unit);
  if (here.empty() || relaunches_) return;
  const NamedRange range(std::string(dag_.name_of_task(here.front())));
  for (const TaskId id : here) {
    for (const TaskId other : waits_.of(id)) events_[dag_.unit_of(other).front()].ended->awaited_by(queue_of(id));
  }
  try {
    if (piece_of_[here.front()] == no_piece)
      issue(unit, here);
    else
      start_piece(here.front());
  } catch (const std::exception& error) {
    const std::string rank = std::to_string(dag_.ranks[dag_.tasks[here.front()].rank].world_rank);
    throw std::runtime_error("task '" + std::string(dag_.name_of_task(here.front())) + "' on rank " + rank + ": " + error.what());
  }
}

/// The first task of a piece launches all of it: none of the others waits for another stream.
void Step::start_piece(TaskId id) {
  const CapturedPiece& piece = pieces_[piece_of_[id]];
  const Queue& queue = queue_of(id);
  if (id == piece.tasks.front()) piece.graph.launch(queue);
  if (events_[id].ended) events_[id].ended->record(queue, false);
}

void Step::issue(std::span<const TaskId> unit, const std::vector<TaskId>& here) {
  UnitEvents& events = events_[unit.front()];
  for (std::size_t m = 1; m < here.size(); ++m) {
    Event& ready = events.ready[m - 1].second;
    ready.record(queue_of(here[m]), is_one_graph());
    ready.awaited_by(queue_of(here.front()));
  }
  Queue& queue = queue_of(here.front());
  if (dates_) events.began_at->record(queue, is_one_graph());
  if (!is_communication(dag_.tasks[here.front()].op)) {
    run_kernel(here.front());
  } else if (nccl_ != nullptr) {
    nccl_->issue(
        here.front(), [this](BufferId id) { return tensor(id).data; }, queue.stream);
  } else {
    run_unit_of_virtual_ranks(unit);
  }
  if (dates_) events.ended_at->record(queue, is_one_graph());
  if (events.ended) events.ended->record(queue, is_one_graph());
  for (std::size_t m = 1; m < here.size(); ++m) events.ended->awaited_by(queue_of(here[m]));
}

void Step::run_kernel(TaskId id) {
  const Task& task = dag_.tasks[id];
  std::vector<DeviceTensor> operands;
  for (const Operand& operand : dag_.operands_of(id)) operands.push_back(tensor(operand.buffer));
  device_operation(task.op).kernel(queue_of(id), operands, dag_.attributes[task.attributes]);
}

void Step::run_unit_of_virtual_ranks(std::span<const TaskId> unit) {
  // A virtual collective looks at the operands' addresses and numbers of elements alone, so any pointer type will do.
  const Collective collective = collective_of(dag_, unit, [this](BufferId id) { return static_cast<float*>(tensor(id).data); });
  DType dtype = DType::f32;
  for (const TaskId id : unit)
    for (const Operand& operand : dag_.operands_of(id)) dtype = dag_.buffers[operand.buffer].dtype;
  run_virtual_collective(queue_of(unit.front()), collective, dtype);
}

void Step::join() {
  std::size_t next = 0;
  for (const auto& queue : queues_) {
    if (!queue) continue;
    joins_[next].record(queue->get(), is_one_graph());
    joins_[next++].awaited_by(origin_->get());
  }
  end_->record(origin_->get(), is_one_graph());
}

void Step::drive() {
  if (!relaunches_) join();
  if (is_one_graph()) launch_graph();
  std::size_t at = 0;
  wait_for(origin_->get(), "the step", [&] { report_first_that_runs(at); });
  ran_ = true;
  filled_ = false;

  for (const TaskId first : order_) {
    const UnitEvents& events = events_[first];
    const bool dated = dates_ && events.began_at.has_value();
    completions_->ended(first, dated ? events.began_at->seconds_since(*begin_) : 0,
                        dated ? events.ended_at->seconds_since(*begin_) : 0);
  }
}

/// A graph of the same tasks, with dates or without, is captured once.
void Step::launch_graph() {
  if (!relaunches_) graph_ = capture_->finish();
  capture_.reset();
  load();
  launched_->record(origin_->get(), false);
  graph_.launch(origin_->get());
}

/// One that is shorter ends before clocks change, if none follows it.
constexpr Seconds shortest_that_draws_power = 0.02;

std::size_t Step::runs_of_mean() const {
  if (!ran_ || duration() < shortest_that_draws_power) return 1;
  return 1 + static_cast<std::size_t>(time_of_mean_clocks() / duration());
}

/// Draws power before a step as the step before it would, where there was none, so that a measured step begins at the clocks of
/// training.
void Step::load() {
  constexpr Seconds long_enough = 0.2;
  if (!ran_ || !filled_ || duration() < shortest_that_draws_power) return;
  try {
    if (!load_) load_.emplace(multiprocessors_);
    load_->put(origin_->get(), long_enough);
  } catch (const std::runtime_error& error) {
    cudaGetLastError();
    say_once(std::string("no load runs before the step, whose clocks may be higher than in training: ") + error.what());
  }
}

/// Waits until a queue is done. Meanwhile `report` tells the other processes how far this one is. Throws when the run has failed.
void Step::wait_for(const Queue& queue, const char* what, const std::function<void()>& report) {
  constexpr std::chrono::milliseconds often(5);
  while (options_.control != nullptr && cudaStreamQuery(queue.stream) == cudaErrorNotReady) {
    report();
    std::this_thread::sleep_for(often);
  }
  check(cudaStreamSynchronize(queue.stream), what);
  if (options_.control == nullptr) return;
  options_.control->waits_no_more();
  if (const std::optional<std::string> failure = options_.control->failure()) throw std::runtime_error(*failure);
}

/// Reports the first task, in the order of issue, that has not ended. `at` is the one that was found before. What graphs record
/// keeps the date of the run before until it is recorded again, so an event counts from when the graphs of this run begin.
void Step::report_first_that_runs(std::size_t& at) {
  const Event& since = is_one_graph() ? *launched_ : *begin_;
  const auto has_ended = [&](TaskId first) {
    const UnitEvents& events = events_[first];
    return !events.ended_at ||
           (dates_ ? events.ended_at->has_happened_since(since) : !events.ended || events.ended->has_happened());
  };
  while (at < order_.size() && has_ended(order_[at])) ++at;
  if (at < order_.size()) options_.control->progress(order_[at], is_communication(dag_.tasks[order_[at]].op));
}

void Step::fill(std::uint64_t seed) {
  filled_ = true;
  for (RankIndex rank = 0; rank < dag_.ranks.size(); ++rank) {
    if (is_here(rank) && arena_.size[rank] > 0)
      check(cudaMemsetAsync(arena_begin_[rank], 0xFF, static_cast<std::size_t>(arena_.size[rank]), origin_->get().stream),
            "cudaMemset");
  }
  GpuContentsWriter writer(origin_->get(), [this](BufferId id) { return tensor(id); });
  write_initial_contents(dag_, seed, writer);
  check(cudaStreamSynchronize(origin_->get().stream), "the initial contents");
}

std::size_t Step::verify_collectives() {
  const std::vector<GroupId> distinct = distinct_collectives(dag_);
  if (nccl_ == nullptr) {
    for (const GroupId group : distinct) verify_in_own_type(group);
    return tandem::verify_collectives(dag_, [this](const Collective& collective) { run_on_copies(origin_->get(), collective); });
  }
  for (const GroupId group : distinct)
    for (const TaskId id : members_here(dag_.members_of(group))) verify_between_processes(id);
  return distinct.size();
}

/// A reduction of virtual ranks in bf16 or fp16, in the buffers of the step.
void Step::verify_in_own_type(GroupId group) {
  const std::span<const TaskId> unit = dag_.members_of(group);
  const OpKind op = dag_.tasks[unit.front()].op;
  if (op != OpKind::all_reduce && op != OpKind::reduce_scatter && op != OpKind::reduce) return;
  const DType type = dag_.buffers[dag_.operands_of(unit.front()).front().buffer].dtype;
  if (type != DType::bf16 && type != DType::f16) return;
  const auto address = [this](BufferId buffer) { return tensor(buffer).data; };
  const Queue& queue = queue_of(unit.front());
  for (const TaskId id : unit) write_crafted_contents(dag_, id, address, queue.stream);
  run_unit_of_virtual_ranks(unit);
  for (const TaskId id : unit) expect_crafted_result(dag_, id, address, queue.stream);
}

/// Returns when the collective has ended, so that all processes take the collectives in one order.
void Step::verify_between_processes(TaskId id) {
  const auto address = [this](BufferId buffer) { return tensor(buffer).data; };
  const Queue& queue = queue_of(id);
  options_.control->progress(id, false);
  verify_collective(dag_, id, address, queue.stream, [&] {
    nccl_->issue(id, address, queue.stream);
    wait_for(queue, "a collective", [&] { options_.control->progress(id, true); });
  });
}

void Step::read(BufferId id, const HostTensor& out) {
  const DeviceTensor from = tensor(id);
  if (from.data == nullptr) throw std::logic_error("a buffer of a rank that runs elsewhere is read");
  read_back(from, out);
}

}  // namespace

std::unique_ptr<GpuStep> make_gpu_step(const Dag& dag, const GpuStepOptions& options, int multiprocessors) {
  return std::make_unique<Step>(dag, options, multiprocessors);
}

}  // namespace tandem
