// The memory of a simulated step is enough for the step when it is executed: nothing is touched before it was allocated or after
// it was freed, and never more at once than the simulated peak.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/analysis/memory.h"
#include "runtime/backend.h"
#include "runtime/executor.h"
#include "runtime/host/collectives.h"
#include "runtime/host/compare.h"
#include "runtime/host/memory.h"
#include "scenarios/lowering/lower.h"
#include "sim/simulate.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/random_scenarios.h"

namespace tandem::studies::metamorphic_memory_test {
namespace {

constexpr Seconds always = std::numeric_limits<Seconds>::infinity();

/// When a buffer of the simulated step is there.
struct Life {
  Seconds from = -always, to = always;
};

/// From the first allocation to the last free: what a framework holds beside an operation counts as more of a buffer of it, and
/// for less time.
std::vector<Life> lives_of(const Dag& dag, const Timeline& timeline) {
  std::vector<Life> lives(dag.buffers.size());
  const MemoryChanges changes(dag, timeline);
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    for (const MemoryChange& change : changes[rank]) {
      if (is_persistent(dag.buffers[change.buffer].kind)) continue;
      Life& life = lives[change.buffer];
      if (change.bytes > 0) life.from = life.from == -always ? change.at : std::min(life.from, change.at);
      if (change.bytes < 0) life.to = life.to == always ? change.at : std::max(life.to, change.at);
    }
  }
  return lives;
}

/// Executes a DAG on one thread in the order in which a simulation started its tasks. What the simulation has freed becomes NaN.
/// Counts what lies between the first and the last touch of each buffer.
class SimulatedOrder final : public Backend {
 public:
  SimulatedOrder(HostMemory& memory, const Timeline& timeline, std::vector<Life> lives)
      : memory_(memory), timeline_(timeline), lives_(std::move(lives)) {
    const Dag& dag = memory.dag();
    for (BufferId id = 0; id < dag.buffers.size(); ++id)
      if (lives_[id].to != always) by_end_.emplace_back(lives_[id].to, id);
    std::ranges::sort(by_end_);
    for (TaskId id = 0; id < dag.tasks.size(); ++id)
      for (const Operand& operand : dag.operands_of(id)) ++touches_left_[dag.buffers[operand.buffer].base];
    live_.resize(dag.ranks.size());
    peak_.resize(dag.ranks.size());
  }

  void prepare(const Dag& dag, Completions& completions) override {
    dag_ = &dag;
    completions_ = &completions;
  }
  void start(std::span<const TaskId> unit) override { ready_.push_back(unit.front()); }
  void drive() override {
    for (Seconds now = 0; !ready_.empty(); ++now) {
      const auto first = std::ranges::min_element(ready_, {}, [&](TaskId id) { return std::pair(timeline_.start[id], id); });
      const TaskId task = *first;
      ready_.erase(first);
      free_before(timeline_.start[task]);
      run(task);
      completions_->ended(task, now, now + 1);
    }
  }

  /// By rank: bytes of activations and communication buffers.
  const std::vector<Bytes>& touched_at_once() const { return peak_; }
  std::size_t freed() const { return freed_; }
  std::size_t touched_too_early() const { return too_early_; }

 private:
  HostMemory& memory_;
  const Timeline& timeline_;
  std::vector<Life> lives_;
  std::vector<std::pair<Seconds, BufferId>> by_end_;
  std::map<BufferId, std::size_t> touches_left_;
  std::vector<bool> seen_ = std::vector<bool>(lives_.size(), false);
  std::vector<Bytes> live_, peak_;
  std::size_t freed_ = 0, too_early_ = 0;
  const Dag* dag_ = nullptr;
  Completions* completions_ = nullptr;
  std::vector<TaskId> ready_;

  void free_before(Seconds now) {
    for (; freed_ < by_end_.size() && by_end_[freed_].first < now; ++freed_) {
      const HostTensor tensor = memory_.tensor(by_end_[freed_].second);
      std::fill_n(tensor.f32(), tensor.shape.elements(), std::numeric_limits<float>::quiet_NaN());
    }
  }

  void touch(TaskId member) {
    const RankIndex rank = dag_->tasks[member].rank;
    std::vector<BufferId> ended;
    for (const Operand& operand : dag_->operands_of(member)) {
      const BufferId base = dag_->buffers[operand.buffer].base;
      if (is_persistent(dag_->buffers[base].kind)) continue;
      if (timeline_.start[member] < lives_[base].from) ++too_early_;
      if (!seen_[base]) live_[rank] += dag_->buffers[base].bytes();
      seen_[base] = true;
      if (--touches_left_[base] == 0) ended.push_back(base);
    }
    peak_[rank] = std::max(peak_[rank], live_[rank]);
    for (const BufferId base : ended) live_[rank] -= dag_->buffers[base].bytes();
  }

  void run(TaskId id) {
    const Task& task = dag_->tasks[id];
    for (const TaskId member : dag_->unit_of(id)) touch(member);
    if (task.group == no_id) {
      std::vector<HostTensor> operands;
      for (const Operand& operand : dag_->operands_of(id)) operands.push_back(memory_.tensor(operand.buffer));
      operation(task.op).host(operands, dag_->attributes[task.attributes]);
      return;
    }
    CollectiveExchange exchange(
        collective_of(*dag_, dag_->members_of(task.group), [&](BufferId b) { return memory_.tensor(b).f32(); }));
    for (std::size_t m = 0; m < exchange.members(); ++m) exchange.contribute(m);
    for (std::size_t m = 0; m < exchange.members(); ++m) exchange.collect(m);
  }
};

/// The values of every buffer that outlives the step are, to the last bit, those of a step in which nothing is freed: kernels and
/// sums take the same numbers in the same order.
void expect_enough_memory(const RandomScenario& drawn) {
  const Dag dag = lower(drawn.scenario, make_world(drawn.scenario, false));
  const Timeline timeline = simulate(dag).timeline;
  HostMemory kept(dag, data_seed), freed(dag, data_seed);
  SimulatedOrder never_freed(kept, timeline, std::vector<Life>(dag.buffers.size()));
  SimulatedOrder as_simulated(freed, timeline, lives_of(dag, timeline));
  execute(dag, never_freed);
  execute(dag, as_simulated);
  EXPECT_EQ(as_simulated.touched_too_early(), 0U) << drawn.text();
  EXPECT_GT(as_simulated.freed(), 0U) << drawn.text();
  std::size_t different = 0;
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    if (dag.buffers[id].base != id || !is_persistent(dag.buffers[id].kind)) continue;
    const auto elements = static_cast<std::size_t>(dag.buffers[id].shape.elements());
    const auto* a = static_cast<const char*>(kept.tensor(id).data);
    if (!std::equal(a, a + elements * sizeof(float), static_cast<const char*>(freed.tensor(id).data))) ++different;
  }
  EXPECT_EQ(different, 0U) << drawn.text();
  const std::vector<MemoryUse> simulated = memory_use(dag, timeline);
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    EXPECT_GE(simulated[rank].activations + simulated[rank].buffers, as_simulated.touched_at_once()[rank]) << drawn.text();
    EXPECT_GT(as_simulated.touched_at_once()[rank], 0) << drawn.text();
  }
}

constexpr std::size_t few = 12, many = 600;

TEST(SimulatedMemory, IsEnoughToExecuteTheStep) {
  for (const RandomScenario& drawn : random_scenarios(few, 1, 1)) expect_enough_memory(drawn);
}

TEST(SlowSimulatedMemory, IsEnoughToExecuteTheStep) {
  for (const RandomScenario& drawn : random_scenarios(many, 1000, 1)) expect_enough_memory(drawn);
}

/// What the comparison must notice: a buffer that is freed while it is needed.
TEST(SimulatedMemory, FreedTooEarlyShows) {
  const RandomScenario drawn = random_scenarios(1, 1, 1).front();
  const Dag dag = lower(drawn.scenario, make_world(drawn.scenario, false));
  const Timeline timeline = simulate(dag).timeline;
  std::vector<Life> lives = lives_of(dag, timeline);
  for (Life& life : lives)
    if (life.to != always) life.to = life.from;
  HostMemory memory(dag, data_seed);
  SimulatedOrder backend(memory, timeline, std::move(lives));
  execute(dag, backend);
  bool any = false;
  for (const ParameterShard& shard : dag.shards) any = any || std::isnan(*memory.tensor(shard.buffer).f32());
  EXPECT_TRUE(any);
}

}  // namespace
}  // namespace tandem::studies::metamorphic_memory_test
