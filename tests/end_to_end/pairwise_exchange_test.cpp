// What the exchange of Ulysses attention costs on the communicator that the world lays for it.
#include <gtest/gtest.h>

#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "sim/collective_cost.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::studies::pairwise_exchange_test {
namespace {

// Each of eight ranks on two nodes sends an eighth of its buffer to each of four outside: a half leaves over its NIC. Round a
// ring, (7/8) / 4 would.
TEST(ContextExchange, GoesPairwise) {
  const Scenario scenario = parse_scenario(base_text(), "base",
                                           {"parallelism={tp: 1, sp: false, pp: 1, cp: 8, dp: 4, cp_method: ulysses}",
                                            "model.kv_heads=8", "cluster.gpus_per_node=4", "cluster.nics_per_node=4"});
  for (const bool folded : {true, false}) {
    const World world = make_world(scenario, folded);
    const CommunicatorId id = world.communicator(0, Slot::context);
    ASSERT_NE(id, no_id);
    const Communicator& group = world.communicators[id];
    constexpr Bytes bytes = 1 << 30;
    const CollectiveCost cost = collective_cost(OpKind::all_to_all, bytes, group.members.size(), group.layout);
    const double nic = scenario.cluster.nic_gbps * 1e9 / 8 * scenario.cluster.nic_efficiency;
    const Seconds transfer = bytes / 2.0 / nic;
    EXPECT_NEAR(uncontended_time(cost, group.layout, world.links) - cost.latency, transfer, 1e-6 * transfer);
  }
}

}  // namespace
}  // namespace tandem::studies::pairwise_exchange_test
