// Transfers between stages as rendezvous, where a send waits until it is received: which schedules wait in a circle.
#include "studies/lint/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/issue_order.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::rendezvous_test {
namespace {

using testing::IsEmpty;
using testing::Not;

// Two ranks that both send first and then receive; posted together they pass.
TEST(Rendezvous, CirclesOfTransfers) {
  const Transfer to_1{.peer = 1, .id = 0, .name = "send a"}, from_0{.peer = 0, .id = 0, .name = "receive a"};
  const Transfer to_0{.peer = 0, .id = 1, .name = "send b"}, from_1{.peer = 1, .id = 1, .name = "receive b"};
  EXPECT_THAT(circle_of({{{to_1}, {from_1}}, {{to_0}, {from_0}}}),
              testing::ElementsAre("stage 0 waits with send a for stage 1", "stage 1 waits with send b for stage 0"));
  EXPECT_THAT(circle_of({{{to_1}, {from_1}}, {{from_0}, {to_0}}}), IsEmpty());
  EXPECT_THAT(circle_of({{{to_1, from_1}}, {{to_0}, {from_0}}}), IsEmpty());
  EXPECT_THAT(circle_of({}), IsEmpty());
}

Scenario pipeline(const std::string& schedule, const std::vector<std::string>& more) {
  std::vector<std::string> overrides{"training.global_batch=512", "training.schedule=" + schedule};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return pipeline_in_small(parse_scenario(base_text(), "s.yaml", overrides));
}

// Megatron-LM's reason for send_forward_recv_backward: 1F1B's neighbours each send first. GPipe's never do.
TEST(Rendezvous, SchedulesAsRendezvous) {
  const auto circle = [](const Scenario& small, bool batched) {
    return circle_of(pipeline_transfers(lower(small, make_world(small, false)), batched));
  };
  EXPECT_THAT(circle(pipeline("1f1b", {}), true), IsEmpty());
  EXPECT_THAT(circle(pipeline("1f1b", {}), false), Not(IsEmpty()));
  EXPECT_THAT(circle(pipeline("gpipe", {}), true), IsEmpty());
  EXPECT_THAT(circle(pipeline("gpipe", {}), false), IsEmpty());
}

// In the order in which the units are issued, the same on every rank, nothing can wait in a circle, batched or not.
TEST(Rendezvous, TheOrderOfIssueNeverWaitsInACircle) {
  for (const char* schedule : {"1f1b", "gpipe", "zb-h1"}) {
    const Scenario small = pipeline(schedule, {});
    const Dag dag = lower(small, make_world(small, false));
    RankTransfers ranks(dag.ranks.size());
    for (const TaskId unit : issue_order(dag)) {
      if (dag.tasks[unit].op != OpKind::send && dag.tasks[unit].op != OpKind::receive) continue;
      const auto members = dag.unit_of(unit);
      for (std::size_t side = 0; side < 2; ++side)
        ranks[dag.tasks[members[side]].rank].push_back(
            {{.peer = dag.tasks[members[1 - side]].rank, .id = dag.tasks[unit].group, .name = ""}});
    }
    EXPECT_THAT(circle_of(ranks), IsEmpty()) << schedule;
  }
}

}  // namespace
}  // namespace tandem::studies::rendezvous_test
