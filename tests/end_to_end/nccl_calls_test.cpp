// What lowering writes is what NCCL can be asked for: every collective of random steps, by NCCL's semantics and the host's.
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/analysis/distinct_collectives.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/nccl_reference.h"

namespace tandem::studies::nccl_calls_test {
namespace {

constexpr std::size_t steps = 24;

DType type_of(const Dag& dag, GroupId group) {
  return dag.buffers[dag.operands_of(dag.members_of(group).front()).front().buffer].dtype;
}

bool adds_up_fp8(const Dag& dag, GroupId group) {
  const OpKind op = dag.tasks[dag.members_of(group).front()].op;
  const bool reduces = op == OpKind::all_reduce || op == OpKind::reduce_scatter || op == OpKind::reduce;
  return reduces && type_of(dag, group) == DType::f8;
}

TEST(NcclCalls, OfRandomStepsDoAsTheHost) {
  std::size_t compared = 0, refused = 0;
  for (const RandomStep& step : valid_steps(steps).steps) {
    SCOPED_TRACE(step.text());
    const Scenario scenario = tiny_cluster(step.overrides);
    const Dag dag = lower(scenario, make_world(scenario, false));
    for (const GroupId group : distinct_collectives(dag)) {
      const TaskId first = dag.members_of(group).front();
      if (dag.tasks[first].op == OpKind::barrier) continue;
      if (type_of(dag, group) == DType::f4) {  // steps in fp4 are executed on the host alone
        EXPECT_THROW(plan_call(dag, first), std::logic_error);
        continue;
      }
      if (adds_up_fp8(dag, group)) {
        EXPECT_THROW(plan_call(dag, first), std::runtime_error);
        ++refused;
      } else {
        expect_calls_do_as_the_host(dag, group);
        ++compared;
      }
    }
  }
  EXPECT_GT(refused, 0U);  // some steps compress their gradients to fp8
  EXPECT_GT(compared, 4 * refused);
}

}  // namespace
}  // namespace tandem::studies::nccl_calls_test
