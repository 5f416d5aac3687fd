// Bytes are conserved link by link: what the members of a collective send, by its closed form, is what crosses their ports.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "scenarios/lowering/lower.h"
#include "sim/collective_cost.h"
#include "tests/end_to_end/random_scenarios.h"

namespace tandem::studies::metamorphic_volume_test {
namespace {

/// Crossings of all links of a tier.
double crossings_of(const Dag& dag, const Paths& paths, Tier tier) {
  double sum = 0;
  for (const Crossing& crossing : paths.crossings)
    if (dag.links[crossing.link].tier == tier) sum += crossing.multiplicity;
  return sum;
}

/// What leaves a GPU's port arrives at another's, and what leaves a NIC at another: "gpu3 out", "nic5 in".
double crossings_of(const Dag& dag, const Paths& paths, Tier tier, const std::string& direction) {
  double sum = 0;
  for (const Crossing& crossing : paths.crossings) {
    const Link& link = dag.links[crossing.link];
    if (link.tier == tier && link.name.ends_with(direction)) sum += crossing.multiplicity;
  }
  return sum;
}

bool has_dead_nic(const Scenario& scenario) {
  return std::ranges::any_of(scenario.cluster.link_faults, [](const topology::LinkFault& fault) {
    return fault.factor == 0 &&
           (fault.where == topology::LinkFault::Where::nic || fault.where == topology::LinkFault::Where::rail);
  });
}

/// What all members put on the bus.
double bus_bytes(OpKind op, double bytes, double n) {
  switch (op) {
    case OpKind::all_reduce:
      return 2 * (n - 1) * bytes;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
      return (n - 1) * bytes;
    default:
      return 0;
  }
}

/// Of each collective, once for all that are alike. Returns how many were compared.
std::size_t expect_conserved(const RandomScenario& drawn) {
  const Dag dag = lower(drawn.scenario, make_world(drawn.scenario, false));
  CollectiveCosts costs(dag);
  std::map<std::tuple<CommunicatorId, OpKind, Bytes>, bool> seen;
  std::size_t compared = 0;
  for (const Task& task : dag.tasks) {
    if (task.group == no_id) continue;
    const Group& group = dag.groups[task.group];
    if (!seen.emplace(std::tuple(group.communicator, task.op, group.bytes), true).second) continue;
    const Communicator& communicator = dag.communicators[group.communicator];
    const CollectiveCost& cost = costs.of(task);
    const Paths& paths = communicator.layout.paths[cost.paths];
    if (paths.crossings.empty()) continue;  // too small to take bandwidth from anybody
    const std::string what = communicator.name + ", " + std::string(operation(task.op).name) + ": " + drawn.text();
    const double out = crossings_of(dag, paths, Tier::nic, " out"), in = crossings_of(dag, paths, Tier::nic, " in");
    EXPECT_EQ(out, in) << what;
    EXPECT_EQ(out + in, crossings_of(dag, paths, Tier::nic)) << what;
    if (drawn.scenario.cluster.node_links == topology::NodeLinks::mesh) continue;  // shared out over links of different ends
    if (paths.algorithm != Algorithm::ring) continue;
    const auto n = static_cast<double>(communicator.members.size());
    const double whole = bus_bytes(task.op, static_cast<double>(group.bytes), n);
    if (whole == 0) continue;
    // Every member has one next member on each channel: inside the node from port to port, else from NIC to NIC. The GPU of a
    // dead NIC goes over another one's, by NVLink before and after.
    const double hops = n * paths.channels, crossed = (crossings_of(dag, paths, Tier::nvlink) + out + in) / 2;
    EXPECT_GE(crossed, hops) << what;
    EXPECT_LE(crossed, (has_dead_nic(drawn.scenario) ? 3 : 1) * hops) << what;
    const double per_wire_byte = nccl_constants().data_per_wire_byte[static_cast<std::size_t>(cost.protocol)];
    const double sent = static_cast<double>(cost.bytes_per_channel) / cost.stretch * per_wire_byte * hops;
    // A channel's share of the data is rounded up to whole bytes, and what carries it on the wire once more.
    EXPECT_NEAR(sent, whole, (1 + per_wire_byte + 1e-9 * whole / hops) * hops) << what;
    ++compared;
  }
  return compared;
}

constexpr std::size_t few = 24, many = 2000;

TEST(BytesOnLinks, AreThoseOfTheClosedForm) {
  std::size_t compared = 0;
  for (const RandomScenario& drawn : random_scenarios(few, 1, 1)) compared += expect_conserved(drawn);
  EXPECT_GT(compared, 3 * few);
}

TEST(SlowBytesOnLinks, AreThoseOfTheClosedForm) {
  std::size_t compared = 0;
  for (const RandomScenario& drawn : random_scenarios(many, 1000, 1)) compared += expect_conserved(drawn);
  EXPECT_GT(compared, 3 * many);
}

}  // namespace
}  // namespace tandem::studies::metamorphic_volume_test
