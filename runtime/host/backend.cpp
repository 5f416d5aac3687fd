#include "runtime/host/backend.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>

#include "runtime/host/collectives.h"
#include "runtime/host/worker.h"

namespace tandem {
namespace {

/// A collective under way on its members' workers. None of them waits: the last to contribute has all of them collect, and the
/// last to collect reports the end.
struct RunningCollective {
  RunningCollective(const Dag& dag, std::span<const TaskId> tasks, const HostMemory& memory)
      : unit(tasks), exchange(collective_of(dag, tasks, [&](BufferId id) { return memory.tensor(id).f32(); })) {}

  std::span<const TaskId> unit;
  CollectiveExchange exchange;
  std::atomic<std::size_t> begun = 0, contributed = 0, collected = 0;
  Seconds start = 0;  ///< when the last member began; written by that member
};

class HostBackend final : public Backend {
 public:
  explicit HostBackend(HostMemory& memory) : memory_(memory) {}
  ~HostBackend() override { stop_workers(); }

  void prepare(const Dag& dag, Completions& completions) override;
  void start(std::span<const TaskId> unit) override;
  void drive() override;

 private:
  using Clock = std::chrono::steady_clock;

  HostMemory& memory_;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::vector<std::unique_ptr<Worker>> workers_;  ///< by rank and stream; null where the DAG has no task
  std::vector<TaskId> early_;                     ///< the first tasks of the units started before `drive`
  bool driving_ = false;
  Clock::time_point zero_;

  std::mutex mutex_;
  std::condition_variable settled_;
  std::size_t running_ = 0;  ///< units started and not ended; guarded by `mutex_`, like `failure_`
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;

  std::size_t worker_index(const Task& task) const { return task.rank * stream_count + static_cast<std::size_t>(task.stream); }
  Seconds now() const { return std::chrono::duration<double>(Clock::now() - zero_).count(); }

  void launch(TaskId first);
  void launch_collective(std::span<const TaskId> unit);
  void run_kernel(TaskId id);
  void contribute(const std::shared_ptr<RunningCollective>& collective, std::size_t member);
  void collect(RunningCollective& collective, std::size_t member);
  void end(TaskId task, Seconds start);
  void fail(std::exception_ptr failure);
  void stop_workers();

  /// Has the worker of task `id` run `step`, unless the run has failed; what `step` throws fails the run, naming the task.
  template <typename Step>
  void enqueue(TaskId id, Step step) {
    workers_[worker_index(dag_->tasks[id])]->push([this, id, step] { guard(id, step); });
  }

  template <typename Step>
  void guard(TaskId id, const Step& step) {
    if (failed_) return;
    try {
      step();
    } catch (const std::exception& error) {
      const std::string rank = std::to_string(dag_->ranks[dag_->tasks[id].rank].world_rank);
      fail(std::make_exception_ptr(
          std::runtime_error("task '" + std::string(dag_->name_of_task(id)) + "' on rank " + rank + ": " + error.what())));
    }
  }
};

void HostBackend::prepare(const Dag& dag, Completions& completions) {
  if (&dag != &memory_.dag()) throw std::logic_error("the host backend's memory belongs to another DAG");
  dag_ = &dag;
  completions_ = &completions;
  early_.clear();
  driving_ = false;
  running_ = 0;
  failure_ = nullptr;
  failed_ = false;
  workers_.clear();
  workers_.resize(dag.ranks.size() * stream_count);
  for (const Task& task : dag.tasks) {
    std::unique_ptr<Worker>& worker = workers_[worker_index(task)];
    if (!worker) worker = std::make_unique<Worker>();
  }
}

void HostBackend::start(std::span<const TaskId> unit) {
  {
    const std::scoped_lock lock(mutex_);
    ++running_;
  }
  if (driving_) {
    launch(unit.front());
  } else {
    early_.push_back(unit.front());
  }
}

void HostBackend::drive() {
  driving_ = true;
  zero_ = Clock::now();
  for (const TaskId first : early_) launch(first);
  {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [this] { return running_ == 0 || failure_ != nullptr; });
  }
  stop_workers();
  if (failure_) std::rethrow_exception(failure_);
}

void HostBackend::launch(TaskId first) {
  const Task& task = dag_->tasks[first];
  if (is_communication(task.op)) {
    guard(first, [&] { launch_collective(dag_->members_of(task.group)); });
  } else {
    enqueue(first, [this, first] { run_kernel(first); });
  }
}

void HostBackend::launch_collective(std::span<const TaskId> unit) {
  const auto collective = std::make_shared<RunningCollective>(*dag_, unit, memory_);
  for (std::size_t i = 0; i < unit.size(); ++i) {
    enqueue(unit[i], [this, collective, i] { contribute(collective, i); });
  }
}

void HostBackend::run_kernel(TaskId id) {
  const Seconds start = now();
  const Task& task = dag_->tasks[id];
  const Operation& kernel = operation(task.op);
  if (kernel.host == nullptr) throw std::logic_error("no host kernel for " + std::string(kernel.name));
  std::vector<HostTensor> operands;
  for (const Operand& operand : dag_->operands_of(id)) operands.push_back(memory_.tensor(operand.buffer));
  kernel.host(operands, dag_->attributes[task.attributes]);
  end(id, start);
}

void HostBackend::contribute(const std::shared_ptr<RunningCollective>& collective, std::size_t member) {
  const std::span<const TaskId> unit = collective->unit;
  if (++collective->begun == unit.size()) collective->start = now();
  collective->exchange.contribute(member);
  if (++collective->contributed < unit.size()) return;
  for (std::size_t i = 0; i < unit.size(); ++i) {
    enqueue(unit[i], [this, collective, i] { collect(*collective, i); });
  }
}

void HostBackend::collect(RunningCollective& collective, std::size_t member) {
  collective.exchange.collect(member);
  if (++collective.collected == collective.unit.size()) end(collective.unit.front(), collective.start);
}

void HostBackend::end(TaskId task, Seconds start) {
  completions_->ended(task, start, now());
  const std::scoped_lock lock(mutex_);
  if (--running_ == 0) settled_.notify_one();
}

void HostBackend::fail(std::exception_ptr failure) {
  const std::scoped_lock lock(mutex_);
  failed_ = true;
  if (!failure_) failure_ = std::move(failure);
  settled_.notify_one();
}

void HostBackend::stop_workers() {
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker) worker->stop();
  }
}

}  // namespace

std::unique_ptr<Backend> make_host_backend(HostMemory& memory) { return std::make_unique<HostBackend>(memory); }

}  // namespace tandem
