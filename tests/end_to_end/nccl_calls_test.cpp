// What lowering writes is what NCCL can be asked for: every collective of random steps, by NCCL's semantics and the host's.
#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "runtime/cuda/split_rounds.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/world.h"
#include "tests/end_to_end/random_steps.h"
#include "tests/end_to_end/tiny.h"
#include "tests/runtime/nccl_reference.h"

namespace tandem {
namespace {

constexpr std::size_t steps = 24;

TEST(NcclCalls, OfRandomStepsDoAsTheHost) {
  for (const RandomStep& step : valid_steps(steps).steps) {
    SCOPED_TRACE(step.text());
    const Scenario scenario = tiny_cluster(step.overrides);
    const Dag dag = lower(scenario, make_world(scenario, false));
    std::set<std::tuple<OpKind, std::uint32_t, CommunicatorId, Bytes>> seen;
    for (GroupId group = 0; group < dag.groups.size(); ++group) {
      const Task& first = dag.tasks[dag.members_of(group).front()];
      if (first.op == OpKind::barrier) continue;
      if (seen.insert({first.op, first.attributes, dag.groups[group].communicator, dag.groups[group].bytes}).second)
        expect_calls_do_as_the_host(dag, group);
    }
  }
}

}  // namespace
}  // namespace tandem
