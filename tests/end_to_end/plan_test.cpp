// The plan for queues that run by themselves: whatever their speeds, no dependency is broken and no memory used by two at once.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "runtime/analysis/predecessors.h"
#include "runtime/plan/arena.h"
#include "runtime/plan/issue_order.h"
#include "runtime/plan/waits.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/edges.h"
#include "tests/runtime/random_dag.h"

namespace tandem::studies::plan_test {
namespace {

Bytes bytes_of(const Buffer& buffer) { return buffer.bytes(); }

/// When each task starts and ends if streams run their tasks in issue order, each after what the plan has it wait for; durations
/// at random. The members of a collective start together.
struct Played {
  std::vector<double> start, end;

  Played(const Dag& dag, const std::vector<TaskId>& order, const WaitPlan& waits, std::uint32_t seed)
      : start(dag.tasks.size(), 0), end(dag.tasks.size(), 0) {
    std::mt19937 random(seed);
    std::exponential_distribution<double> duration(1);
    std::vector<double> free(dag.ranks.size() * stream_count, 0);
    for (const TaskId first : order) {
      double ready = 0;
      for (const TaskId id : dag.unit_of(first)) {
        ready = std::max(ready, free[queue(dag, id)]);
        for (const TaskId other : waits.of(id)) ready = std::max(ready, end[other]);
      }
      const double done = ready + duration(random);
      for (const TaskId id : dag.unit_of(first)) {
        start[id] = ready;
        end[id] = free[queue(dag, id)] = done;
      }
    }
  }

  static std::size_t queue(const Dag& dag, TaskId id) {
    return dag.tasks[id].rank * stream_count + static_cast<std::size_t>(dag.tasks[id].stream);
  }
};

void expect_dependencies_kept(const Dag& dag, const Played& played) {
  for (const auto& [before, after] : edges_of(dag)) ASSERT_LE(played.end[before], played.start[after]);
}

/// The first two buffers that share bytes while both are in use, between their first touch and their last; empty: there are none.
std::string sharing(const Dag& dag, const ArenaPlan& arena, const Played& played) {
  struct Life {
    BufferId id = no_id;
    double begin = 1e300, end = -1;
  };
  std::vector<Life> lives(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    for (const Operand& operand : dag.operands_of(id)) {
      const BufferId base = dag.buffers[operand.buffer].base;
      lives[base].id = base;
      lives[base].begin = std::min(lives[base].begin, played.start[id]);
      lives[base].end = std::max(lives[base].end, played.end[id]);
    }
  }
  std::erase_if(lives, [](const Life& life) { return life.id == no_id; });
  for (Life& life : lives)
    if (keeps_its_place(dag.buffers[life.id])) life.begin = 0, life.end = 1e300;
  std::ranges::sort(lives, {}, &Life::begin);
  for (std::size_t a = 0; a < lives.size(); ++a) {
    const Buffer& one = dag.buffers[lives[a].id];
    for (std::size_t b = a + 1; b < lives.size() && lives[b].begin < lives[a].end; ++b) {
      const Buffer& other = dag.buffers[lives[b].id];
      const Bytes first = arena.offset[lives[a].id], second = arena.offset[lives[b].id];
      if (one.rank == other.rank && first < second + other.bytes() && second < first + one.bytes())
        return std::to_string(lives[a].id) + " and " + std::to_string(lives[b].id);
    }
  }
  return {};
}

TEST(IssueOrder, HoldsEveryUnitOnceAfterWhatItDependsOn) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Dag dag = random_dag(seed);
    const std::vector<TaskId> order = issue_order(dag);
    std::vector<std::size_t> place(dag.tasks.size(), order.size());
    std::size_t issued = 0;
    for (std::size_t at = 0; at < order.size(); ++at) {
      for (const TaskId id : dag.unit_of(order[at])) {
        EXPECT_EQ(place[id], order.size());
        place[id] = at;
        ++issued;
      }
    }
    EXPECT_EQ(issued, dag.tasks.size());
    for (const auto& [before, after] : edges_of(dag)) EXPECT_LT(place[before], place[after]);
    EXPECT_EQ(issue_order(random_dag(seed)), order);
  }
}

TEST(Waits, KeepEveryDependencyWhateverTheSpeeds) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    const Dag dag = random_dag(seed);
    const std::vector<TaskId> order = issue_order(dag);
    const WaitPlan waits(dag, order, {});
    for (std::uint32_t again = 0; again < 3; ++again) expect_dependencies_kept(dag, Played(dag, order, waits, 3 * seed + again));
  }
}

// Without what follows from others: on two streams that take turns, one wait for each turn.
TEST(Waits, NameNothingTwice) {
  DagBuilder builder;
  builder.dag().devices.emplace_back();
  const RankIndex rank = builder.add_rank({});
  const BufferId a = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(4));
  const BufferId b = builder.buffer(rank, BufferKind::activation, DType::f32, Shape(4));
  const auto scale = [&](BufferId in, BufferId out, Stream stream) {
    return builder.kernel(OpKind::scale, ScaleAttributes{}, {.name = "scale", .stream = stream}, std::array{in}, std::array{out});
  };
  const TaskId first = builder.kernel(OpKind::fill, ScaleAttributes{}, {.name = "fill"}, {}, std::array{a});
  const TaskId second = scale(a, b, Stream::tp);
  const TaskId third = scale(b, a, Stream::compute);
  const TaskId fourth = scale(a, b, Stream::tp);
  const Dag dag = builder.finish();
  const WaitPlan waits(dag, issue_order(dag), {});
  EXPECT_EQ(waits.of(first).size(), 0U);
  ASSERT_EQ(waits.of(second).size(), 1U);
  EXPECT_EQ(waits.of(second).front(), first);
  ASSERT_EQ(waits.of(third).size(), 1U);
  EXPECT_EQ(waits.of(third).front(), second);
  ASSERT_EQ(waits.of(fourth).size(), 1U);
  EXPECT_EQ(waits.of(fourth).front(), third);
  EXPECT_FALSE(waits.is_awaited(fourth));
}

/// Steps of all kinds: pipelines, ZeRO-3, context parallelism, experts.
std::vector<std::string> meshes() {
  return {"parallelism.dp=1",
          "parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1",
          "parallelism.pp=2 parallelism.vpp=2 parallelism.dp=2 training.schedule=interleaved-1f1b",
          "parallelism.dp=4 parallelism.zero=3",
          "parallelism.cp=4 parallelism.dp=2 training.recompute=full",
          "parallelism.pp=2 parallelism.dp=2 training.schedule=zb-h1",
          "parallelism.tp=4 parallelism.sp=true training.overlap.tp=true parallelism.dp=2"};
}

TEST(Arena, KeepsBuffersApartWhateverTheSpeeds) {
  for (std::uint32_t seed = 0; const std::string& mesh : meshes()) {
    SCOPED_TRACE(mesh);
    const Scenario scenario = tiny_cluster(words(mesh));
    const Dag dag = lower(scenario, make_world(scenario, false));
    const std::vector<TaskId> order = issue_order(dag);
    const ArenaPlan arena = plan_arena(dag, order, bytes_of);
    const WaitPlan waits(dag, order, arena.waits);
    for (int again = 0; again < 5; ++again) {
      const Played played(dag, order, waits, ++seed);
      expect_dependencies_kept(dag, played);
      ASSERT_EQ(sharing(dag, arena, played), "");
    }
  }
}

// Without its waits the plan would be wrong at some speeds.
TEST(Arena, NeedsItsWaits) {
  const Scenario scenario = tiny_cluster(words("parallelism.dp=4 parallelism.zero=3"));
  const Dag dag = lower(scenario, make_world(scenario, false));
  const std::vector<TaskId> order = issue_order(dag);
  const ArenaPlan arena = plan_arena(dag, order, bytes_of);
  const WaitPlan too_few(dag, order, {});
  bool apart = true;
  for (std::uint32_t seed = 0; seed < 20; ++seed) apart = apart && sharing(dag, arena, Played(dag, order, too_few, seed)).empty();
  EXPECT_FALSE(apart);
}

TEST(Arena, WastesLittle) {
  for (const std::string& mesh : meshes()) {
    SCOPED_TRACE(mesh);
    const Scenario scenario = tiny_cluster(words(mesh));
    const Dag dag = lower(scenario, make_world(scenario, false));
    const ArenaPlan arena = plan_arena(dag, issue_order(dag), bytes_of);
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      EXPECT_GE(arena.size[rank], arena.alive[rank]);
      EXPECT_LE(static_cast<double>(arena.size[rank]), 1.1 * static_cast<double>(arena.alive[rank]));
    }
  }
}

}  // namespace
}  // namespace tandem::studies::plan_test
