// The comparison with the unsharded step bites for experts: without one exchange, with a weight on the wrong rank, or with
// gradients summed over the wrong ranks, it is another step.

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "runtime/executor.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/serial_backend.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::experts_mutation_test {
namespace {

/// 2 tp x 4 dp ranks as 2 etp x 2 ep x 2 replicas; `options` begin with the stage of ZeRO.
Scenario scenario_of(const std::string& options) {
  return tiny_model(
      words("model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=24 model.moe.capacity_factor=0.75 model.moe.shared_experts=1 "
            "model.moe.balance_loss=1 model.layers=2 parallelism.tp=2 parallelism.sp=true parallelism.dp=4 parallelism.ep=2 "
            "parallelism.etp=2 parallelism.zero=" +
            options));
}

class ExpertMutation : public testing::TestWithParam<const char*>, protected UnshardedStep {
 protected:
  ExpertMutation() : UnshardedStep(scenario_of(GetParam())), dag_(lowered(scenario_of(GetParam()))) {}

  /// Reductions of the experts' gradients, by the ranks that take part: two, whereas all others are over four.
  std::map<std::set<RankIndex>, GroupId> expert_reductions() const {
    std::map<std::set<RankIndex>, GroupId> reductions;
    for (GroupId g = 0; g < dag_.groups.size(); ++g) {
      std::set<RankIndex> ranks;
      for (const TaskId member : dag_.members_of(g)) ranks.insert(dag_.tasks[member].rank);
      const TaskId first = dag_.members_of(g).front();
      if (ranks.size() == 2 && dag_.tasks[first].axis == Axis::dp && dag_.name_of_task(first) == "gradients")
        reductions[ranks] = g;
    }
    return reductions;
  }

  Dag dag_;
};
INSTANTIATE_TEST_SUITE_P(Options, ExpertMutation,
                         testing::Values("0", "2", "1 parallelism.sp=false", "1 training.gates_at_experts=true"));

TEST_P(ExpertMutation, NoneLeavesTheStepAsItIsInAnyOrder) {
  for (unsigned seed = 0; seed < 4; ++seed) EXPECT_LT(difference(dag_, seed), 1e-5);
}

TEST_P(ExpertMutation, TheRouterDropsChoices) {
  HostMemory memory(dag_, data_seed);
  SerialBackend backend(memory, 0);
  execute(dag_, backend);
  std::size_t dropped = 0, choices = 0;
  for (TaskId id = 0; id < dag_.tasks.size(); ++id) {
    if (dag_.tasks[id].op != OpKind::route) continue;
    const HostTensor slots = memory.tensor(dag_.operands_of(id)[2].buffer);
    for (std::int64_t i = 0; i < slots.shape.elements(); ++i, ++choices) dropped += slots.i32()[i] < 0 ? 1 : 0;
  }
  EXPECT_GE(dropped, choices / 4);  // capacity 0.75
  EXPECT_LT(dropped, choices / 2);
}

TEST_P(ExpertMutation, AnyDroppedCollectiveShows) {
  std::map<std::string, std::vector<GroupId>> by_kind;
  std::set<std::string> of_experts;
  for (GroupId g = 0; g < dag_.groups.size(); ++g) {
    const TaskId first = dag_.members_of(g).front();
    const Task& task = dag_.tasks[first];
    const std::string kind = std::string(name_of(task.phase)) + " " + std::string(dag_.name_of_task(first)) + " " +
                             std::string(operation(task.op).name) + " of " + std::to_string(dag_.members_of(g).size());
    by_kind[kind].push_back(g);
    if (dag_.name_of_task(first) == "dispatch" || dag_.name_of_task(first) == "combine") of_experts.insert(kind);
  }
  // There and back, forward and backward: between the ep ranks, and in or out of the etp ranks.
  EXPECT_EQ(of_experts.size(), 2 * 2 * 2U);
  for (const auto& [kind, groups] : by_kind) {
    for (const GroupId group : std::set{groups.front(), groups[groups.size() / 2], groups.back()}) {
      EXPECT_FALSE(difference(dag_, 0, {group}) <= allowed) << kind << " dropped once goes unnoticed";
    }
  }
}

TEST_P(ExpertMutation, DroppedDependenciesShow) {
  const std::pair<const char*, const char*> edges[] = {
      {"permute", "dispatch"},      // rows before they are sent
      {"dispatch", "dispatch"},     // exchanged rows before they are gathered, gathered rows before they are sorted
      {"combine", "combine"},       // summed shards before they are sent back
      {"combine", "unpermute"},     // returned rows before they are weighted
      {"unpermute", "combine"},     // their gradients
      {"dispatch", "permute"},      // those of the rows that were sent
      {"experts up", "gradients"},  // the gradients of weights before their reduction
  };
  for (const auto& [from, to] : edges) {
    const Dag broken = without_edges(dag_, from, to);
    bool noticed = false;
    for (unsigned seed = 0; seed < 40 && !noticed; ++seed) noticed = !(difference(broken, seed) <= allowed);
    EXPECT_TRUE(noticed) << from << " -> " << to << " dropped goes unnoticed";
  }
}

TEST_P(ExpertMutation, ShiftedShardsShow) {
  std::set<std::string> sharded;
  for (const ParameterShard& shard : dag_.shards) {
    const bool expert = shard.tensor.find(".expert") != std::string::npos || shard.tensor.find(".shared") != std::string::npos;
    if (expert) sharded.insert(shard.tensor);
  }
  EXPECT_EQ(sharded.size(), 2 * (4 + 1) * 3U);  // gate, up and down of four experts and the shared one, in two layers
  for (const std::string& tensor : sharded) {
    EXPECT_FALSE(difference(with_shifted_shards(dag_, tensor)) <= allowed) << tensor << " on the wrong ranks goes unnoticed";
  }
}

TEST_P(ExpertMutation, SwappedExpertsShow) {
  Dag dag = dag_;
  for (ParameterShard& shard : dag.shards) {
    const std::size_t at = shard.tensor.find(".expert");
    if (at == std::string::npos) continue;
    char& number = shard.tensor[at + 7];
    number = static_cast<char>(number ^ 1);  // 0 and 1, 2 and 3: of one rank
  }
  EXPECT_FALSE(difference(dag) <= allowed);
}

// Ranks 0 to 7 are etp x ep x replicas, innermost first: gradients belong to {0, 4}, {1, 5}, {2, 6}, {3, 7}.
TEST_P(ExpertMutation, GradientsOfOtherExpertsOrShardsShow) {
  const auto reductions = expert_reductions();
  ASSERT_EQ(reductions.size(), 4U);
  const GroupId first = reductions.at({0, 4});
  const Dag other_shard = with_swapped_members(dag_, first, reductions.at({1, 5}));
  EXPECT_FALSE(difference(other_shard) <= allowed) << "gradients summed over another etp rank's go unnoticed";
  const Dag other_experts = with_swapped_members(dag_, first, reductions.at({2, 6}));
  EXPECT_FALSE(difference(other_experts) <= allowed) << "gradients summed over another ep rank's go unnoticed";
}

TEST_P(ExpertMutation, AnotherRoutingShows) {
  const auto with_routing = [&](const auto& change) {
    Dag dag = dag_;
    for (OpAttributes& any : dag.attributes) {
      if (auto* routing = std::get_if<RoutingAttributes>(&any)) change(*routing);
    }
    return difference(dag);
  };
  EXPECT_FALSE(with_routing([](RoutingAttributes& r) { --r.slots[1]; }) <= allowed) << "a smaller capacity goes unnoticed";
  EXPECT_FALSE(with_routing([](RoutingAttributes& r) { r.balance = 0; }) <= allowed) << "no balance loss goes unnoticed";
  EXPECT_FALSE(with_routing([](RoutingAttributes& r) { r.node_limit = 1, r.nodes = 2; }) <= allowed)
      << "a node limit goes unnoticed";
}

}  // namespace
}  // namespace tandem::studies::experts_mutation_test
