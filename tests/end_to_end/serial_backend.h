#pragma once

#include <random>
#include <set>

#include "runtime/backend.h"
#include "runtime/host/collectives.h"
#include "runtime/host/memory.h"

namespace tandem::studies {

/// Executes a DAG on one thread, taking what is ready in a seeded random order, so that a missing dependency shows for some seed.
/// Groups named in `dropped` are not carried out.
class SerialBackend final : public Backend {
 public:
  SerialBackend(HostMemory& memory, unsigned seed, std::set<GroupId> dropped = {})
      : memory_(memory), random_(seed), dropped_(std::move(dropped)) {}

  void prepare(const Dag& dag, Completions& completions) override {
    dag_ = &dag;
    completions_ = &completions;
  }
  void start(std::span<const TaskId> unit) override { ready_.push_back(unit.front()); }
  void drive() override {
    for (Seconds now = 0; !ready_.empty(); ++now) {
      std::swap(ready_[random_() % ready_.size()], ready_.back());
      const TaskId task = ready_.back();
      ready_.pop_back();
      run(task);
      completions_->ended(task, now, now + 1);
    }
  }

 private:
  HostMemory& memory_;
  std::mt19937 random_;
  std::set<GroupId> dropped_;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::vector<TaskId> ready_;

  void run(TaskId id) {
    const Task& task = dag_->tasks[id];
    if (task.group == no_id) {
      std::vector<HostTensor> operands;
      for (const Operand& operand : dag_->operands_of(id)) operands.push_back(memory_.tensor(operand.buffer));
      operation(task.op).host(operands, dag_->attributes[task.attributes]);
    } else if (!dropped_.contains(task.group)) {
      CollectiveExchange exchange(
          collective_of(*dag_, dag_->members_of(task.group), [&](BufferId b) { return memory_.tensor(b).f32(); }));
      for (std::size_t m = 0; m < exchange.members(); ++m) exchange.contribute(m);
      for (std::size_t m = 0; m < exchange.members(); ++m) exchange.collect(m);
    }
  }
};

}  // namespace tandem::studies
