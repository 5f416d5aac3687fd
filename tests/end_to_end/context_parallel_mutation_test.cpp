// The comparison with the unsharded step bites for context parallelism: without one exchange, or with one wrong position, it is
// another step.

#include <gtest/gtest.h>

#include <map>

#include "runtime/executor.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::context_parallel_mutation_test {
namespace {

Scenario scenario_of(const std::string& method) {
  return tiny_model(words("parallelism.cp=4 training.global_batch=1 parallelism.cp_method=" + method));
}

class ContextParallelMutation : public testing::TestWithParam<const char*>, protected UnshardedStep {
 protected:
  ContextParallelMutation() : UnshardedStep(scenario_of(GetParam())), dag_(lowered(scenario_of(GetParam()))) {}

  Dag dag_;
};
INSTANTIATE_TEST_SUITE_P(Methods, ContextParallelMutation, testing::Values("ring", "all-gather", "ulysses"));
INSTANTIATE_TEST_SUITE_P(
    Latents, ContextParallelMutation,
    testing::Values(
        "ring model.kv_heads=8 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5",
        "all-gather model.kv_heads=8 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 model.mla.v_dim=5"));

TEST_P(ContextParallelMutation, NoneLeavesTheStepAsItIs) { EXPECT_LT(difference(dag_), 1e-5); }

TEST_P(ContextParallelMutation, AnyDroppedExchangeShows) {
  std::map<std::string, std::vector<GroupId>> by_name;
  for (GroupId g = 0; g < dag_.groups.size(); ++g) {
    const Task& first = dag_.tasks[dag_.members_of(g).front()];
    if (first.axis == Axis::cp) by_name[std::string(name_of(first.phase)) + " " + dag_.names[first.name]].push_back(g);
  }
  EXPECT_GE(by_name.size(), 2U);
  for (const auto& [name, groups] : by_name) {
    for (const GroupId group : {groups.front(), groups[groups.size() / 2], groups.back()}) {
      EXPECT_FALSE(difference(dag_, 0, {group}) <= allowed) << name << " dropped once goes unnoticed";
    }
  }
}

/// `change` applied to the positions of all operations of one kind.
template <typename Attributes, typename Change>
Dag with_positions(Dag dag, Change change) {
  std::size_t changed = 0;
  for (OpAttributes& any : dag.attributes) {
    if (auto* attributes = std::get_if<Attributes>(&any)) change(*attributes), ++changed;
  }
  EXPECT_GT(changed, 0U);
  return dag;
}

TEST_P(ContextParallelMutation, WrongPositionsShow) {
  const auto from_zero = [](auto& attributes) { attributes.positions.start = {0, attributes.positions.length[0]}; };
  const bool latents = std::string(GetParam()).find("mla") != std::string::npos;
  const Dag rotated =
      latents ? with_positions<MlaHeadsAttributes>(dag_, from_zero) : with_positions<SplitHeadsAttributes>(dag_, from_zero);
  EXPECT_FALSE(difference(rotated) <= allowed) << "rotary positions counted from 0 on every rank go unnoticed";
  const Dag masked = with_positions<AttentionAttributes>(dag_, [](AttentionAttributes& a) { --a.queries.start[0]; });
  EXPECT_FALSE(difference(masked) <= allowed) << "a causal mask shifted by one goes unnoticed";
}

TEST_P(ContextParallelMutation, TokensOfOtherPositionsShow) {
  Dag dag = dag_;
  for (InputShard& input : dag.inputs) {
    if (input.positions.start[0] == 0) ++input.positions.start[0];
  }
  EXPECT_FALSE(difference(dag) <= allowed);
}

}  // namespace
}  // namespace tandem::studies::context_parallel_mutation_test
