// Wrong fabrics, links, PCIe ports, GPUs and placements: each error points at the entry and says what helps.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "scenarios/reading/load.h"
#include "tests/scenarios/base_scenario.h"

namespace tandem::scenarios::fabric_errors_test {
namespace {

/// The base scenario with this cluster, faults or parallelism, on as many lines as it likes. An @ stands where the error must
/// point.
struct Broken {
  std::string name;
  std::string section;
  std::vector<std::string> words;
};

void PrintTo(const Broken& broken, std::ostream* out) { *out << broken.section; }

class FabricErrors : public testing::TestWithParam<Broken> {};

std::string with_section(const std::string& section) {
  std::string text;
  for (const std::string& line : base_lines()) {
    std::string start = line.substr(0, line.find(':') + 1);
    if (!section.starts_with(start)) text += line + "\n";
  }
  return section + "\n" + text;
}

TEST_P(FabricErrors, NameThePlaceAndTheRemedy) {
  std::string section = GetParam().section;
  const std::size_t at = section.find('@');
  ASSERT_NE(at, std::string::npos);
  section.erase(at, 1);
  const std::string before = section.substr(0, at);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t column = at - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0
  try {
    parse_scenario(with_section(section), "s.yaml", {});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, testing::StartsWith("s.yaml:" + std::to_string(line) + ":" + std::to_string(column) + ": "));
    for (const std::string& word : GetParam().words) EXPECT_THAT(message, testing::HasSubstr(word));
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

/// Four nodes of eight NICs on four leaves below two spines, if `of` is not broken.
std::string custom(const std::string& leaf3, const std::string& spine1) {
  return "cluster: {preset: dgx-h100, gpus: 32, fabric: {kind: custom, switches: [\n"
         "  {name: leaf0, nics: 0-7, up: [{to: spine0, cables: 4, gbps: 400}, {to: spine1, cables: 4, gbps: 400}]},\n"
         "  {name: leaf1, nics: 8-15, up: [{to: spine0, gbps: 400}, {to: spine1, gbps: 400}]},\n"
         "  {name: leaf2, nics: [16-19, 20, 21-23], up: {to: spine0, gbps: 400}},\n"
         "  " +
         leaf3 +
         ",\n"
         "  {name: spine0},\n"
         "  " +
         spine1 + "]}}";
}

const std::string leaf3 = "{name: leaf3, nics: 24-31, up: [{to: spine1, cables: 4, gbps: 400}]}", spine1 = "{name: spine1}";

TEST(FabricErrors, AFabricSwitchByUplinkIsRead) {
  const ClusterSpec cluster = parse_scenario(with_section(custom(leaf3, spine1)), "s.yaml", {}).cluster;
  EXPECT_EQ(cluster.fabric.kind, FabricSpec::Kind::custom);
  ASSERT_EQ(cluster.fabric.switches.size(), 6U);
  ASSERT_EQ(cluster.fabric.switches[2].nics.size(), 3U);
  EXPECT_TRUE(cluster.fabric.switches[2].nics[1].contains(20));
  EXPECT_EQ(cluster.fabric.switches[0].up[1].to, "spine1");
  EXPECT_EQ(cluster.fabric.switches[0].up[1].cables, 4);
  EXPECT_EQ(cluster.fabric.switches[2].up[0].cables, 1);
}

std::string fabric(const std::string& fields) { return "cluster: {preset: dgx-h100, gpus: 32, fabric: {" + fields + "}}"; }
std::string cluster(const std::string& fields) { return "cluster: {preset: dgx-h100, gpus: 32, " + fields + "}"; }
std::string faults(const std::string& fields) { return "faults: {" + fields + "}"; }
std::string placement(const std::string& value) {
  return "parallelism: {tp: 4, sp: true, pp: 2, dp: 4, placement: " + value + "}";
}

const Broken fabrics[] = {
    {"Kind", fabric("kind: @dragonfly"), {"cannot be `dragonfly`", "did you mean `dragonfly+`?"}},
    {"KindToCome", fabric("kind: @rail-only"), {"rail-only is not lowered yet"}},
    {"Routing", fabric("routing: @ecpm"), {"did you mean `ecmp`?"}},
    {"Flows", fabric("routing: ecmp, flows: @65"), {"flows is `65`", "from 1 to 64"}},
    {"Seed", fabric("routing: ecmp, ecmp_seed: @-1"), {"ecmp_seed is `-1`"}},
    {"TwoTiersOfGroups",
     fabric("kind: dragonfly+, tiers: @2, oversubscription: [1, 1]"),
     {"tiers 2 with kind dragonfly+", "expected 3"}},
    {"NoSwitches", fabric("kind: @custom"), {"switches is missing"}},
    {"SwitchesOfAFatTree", fabric("switches: @[{name: a, nics: 0-31}]"), {"expected kind custom"}},
    {"NoSuchSwitch",
     custom("{name: leaf3, nics: 24-31, up: [{to: @spin1, cables: 4, gbps: 400}]}", spine1),
     {"no switch `spin1`", "did you mean `spine1`?"}},
    {"SwitchTwice",
     custom("{name: @leaf2, nics: 24-31, up: {to: spine1, gbps: 400}}", spine1),
     {"two switches are named `leaf2`"}},
    {"NicTwice", custom("{name: leaf3, nics: @22-31, up: {to: spine1, gbps: 400}}", spine1), {"NIC 22 hangs on `leaf2` already"}},
    {"NicsBackwards",
     custom("{name: leaf3, nics: @31-24, up: {to: spine1, gbps: 400}}", spine1),
     {"nics is `31-24`", "a range such as"}},
    {"NoCable",
     custom("{name: leaf3, nics: 24-31, up: {to: spine1, cables: @0, gbps: 400}}", spine1),
     {"cables is `0`", "from 1"}},
    {"CableOfNothing", custom("{name: leaf3, nics: 24-31, up: {to: spine1, gbps: @0}}", spine1), {"gbps is `0`", "from 0.001"}},
    {"Circle", custom(leaf3, "{name: spine1, up: {to: @leaf0, gbps: 400}}"), {"`spine1` to `leaf0` closes a circle"}},
    {"CircleOfOne", custom(leaf3, "{name: spine1, up: {to: @spine1, gbps: 400}}"), {"closes a circle"}},
    {"NicOnNoSwitch",
     "cluster: {preset: dgx-h100, gpus: 32, fabric: {kind: custom, switches: @[{name: a, nics: 0-30}]}}",
     {"NIC 7 of node 3 hangs on no switch", "expected a switch with NIC 31"}},
    {"Islands",
     "cluster: {preset: dgx-h100, gpus: 32, fabric: {kind: custom, switches: @[{name: a, nics: 0-15}, {name: b, nics: 16-31}]}}",
     {"disconnected: no way leads from a to b"}},
    {"NoNvlink", cluster("nvlink_GBps: @0"), {"nvlink_GBps is `0`", "a number from 0.001"}},
    {"NoNic", cluster("nic_gbps: @0"), {"nic_gbps is `0`", "a number from 0.001"}},
    {"NicsOfTooFewGpus", cluster("pcie: {nic_of_gpu: @[0, 1]}"), {"lists 2 NICs for 8 GPUs"}},
    {"NoSuchNicOfAGpu", cluster("pcie: {nic_of_gpu: [0, 1, 2, 3, 4, 5, 6, @8]}"), {"no NIC 8", "expected 0 to 7"}},
    {"NoSuchGpuOfAPort", cluster("pcie: {ports: [{name: a, GBps: 10, gpus: @[0, 8]}]}"), {"no GPU 8", "expected 0 to 7"}},
    {"PortTwice",
     cluster("pcie: {ports: [{name: a, GBps: 10, gpus: 0-3}, {name: @a, GBps: 10, gpus: 4-7}]}"),
     {"two PCIe ports are named `a`"}},
    {"PortOfNothing", cluster("pcie: {ports: [{name: a, GBps: @0, gpus: 0-3}]}"), {"GBps is `0`"}},
    {"PcieWithoutNics",
     "cluster: {preset: dgx-h100, gpus: 32, gpus_per_node: 32, nics_per_node: 0, pcie: @{ports: [{name: a, GBps: 10, gpus: "
     "0-3}]}}",
     {"these nodes have none", "nics_per_node 1 or more"}},
    {"Planes", cluster("nvswitch_planes: @0"), {"nvswitch_planes is `0`"}},
    {"Nvls", cluster("nvls: @sharp"), {"nvls is `sharp`", "true or false"}},
    {"OtherGpuUnknown", cluster("other_gpus: [{nodes: 0, gpu: @a100-80g}]"), {"did you mean `a100-80gb`?"}},
    {"OtherGpuMissing", cluster("other_gpus: [@{nodes: 0}]"), {"cluster.other_gpus.gpu is missing"}},
    {"NoSuchNode", cluster("other_gpus: [{nodes: @2-4, gpu: a100-80gb}]"), {"no node 4", "expected 0 to 3"}},
    {"NodeTwice",
     cluster("other_gpus: [{nodes: 2-3, gpu: a100-80gb}, {nodes: @[0, 3], gpu: h200}]"),
     {"node 3 stands in cluster.other_gpus twice"}},
};
INSTANTIATE_TEST_SUITE_P(Cluster, FabricErrors, testing::ValuesIn(fabrics), [](const auto& test) { return test.param.name; });

const Broken links[] = {
    {"NoLink", faults("dead_link: @{}"), {"names no link", "one of gpu, nic, rail, leaf and pod"}},
    {"TwoLinks", faults("dead_link: {nic: 1, rail: @1}"), {"names nic and rail"}},
    {"DeadNvlink", faults("dead_link: {gpu: @1}"), {"can be slow but not dead", "expected slow_link"}},
    {"CableOfANic", faults("dead_link: {nic: 1, cable: @0}"), {"a cable of a nic", "of a leaf or pod"}},
    {"SlowAsNothing", faults("slow_link: {nic: 1, factor: @0}"), {"factor is `0`", "a number from 1e-06"}},
    {"SlowAsNew", faults("slow_link: {nic: 1, factor: @1}"), {"factor is `1`"}},
    {"SlowByNoFactor", faults("slow_link: @{nic: 1}"), {"factor is missing"}},
    {"NoSuchNic", faults("dead_link: @{nic: 32}"), {"no NIC 32", "expected 0 to 31"}},
    {"NoSuchGpu", faults("slow_link: [{gpu: 31, factor: 0.5}, @{gpu: 32, factor: 0.5}]"), {"no GPU 32", "expected 0 to 31"}},
    {"NoSuchRail", faults("dead_link: @{rail: 8}"), {"no rail 8", "expected 0 to 7"}},
    {"NoSuchLeaf", faults("dead_link: @{leaf: 8}"), {"there is no leaf 8", "expected 0 to 7"}},
    {"NoSuchPod", faults("dead_link: @{pod: 1, cable: 0}"), {"there is no pod 1", "expected 0 to 0"}},
    {"NoSuchCable", faults("slow_link: @{leaf: 0, cable: 32, factor: 0.5}"), {"leaf0 has no cable 32", "expected 0 to 31"}},
    {"CutOff", faults("dead_link: [{leaf: 0, cable: 1}, @{leaf: 3}]"), {"disconnected: no way leads from leaf0 to leaf3"}},
    {"NodeCutOff",
     faults("dead_link: [{nic: 8}, {nic: 9}, {nic: 10}, {nic: 11}, {nic: 12}, {nic: 13}, {nic: 14}, @{nic: 15}, {nic: 16}]"),
     {"node 1 is unreachable: all of its NICs are dead"}},
};
INSTANTIATE_TEST_SUITE_P(Links, FabricErrors, testing::ValuesIn(links), [](const auto& test) { return test.param.name; });

const Broken placements[] = {
    {"Name", placement("@roundrobin"), {"did you mean `round-robin`?"}},
    {"TooShort", placement("@[0, 1, 2]"), {"lists 3 GPUs for 32 ranks", "each of 0 to 31 once"}},
    {"NoNumber", placement("[0, @one]"), {"placement holds `one`"}},
    {"GpuTwice",
     placement("[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, "
               "30, @7]"),
     {"GPU 7 is given to rank 7 and to rank 31"}},
    {"NoSuchGpu",
     placement("[@32, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, "
               "30, 31]"),
     {"no GPU 32", "expected 0 to 31"}},
};
INSTANTIATE_TEST_SUITE_P(Placements, FabricErrors, testing::ValuesIn(placements),
                         [](const auto& test) { return test.param.name; });

TEST(PlacementFile, IsReadBesideTheScenarioAndKeepsItsLines) {
  const std::filesystem::path folder = std::filesystem::path(testing::TempDir()) / "tandem_placement";
  std::filesystem::create_directories(folder);
  std::ofstream good(folder / "gpus.txt"), wrong(folder / "wrong.txt");
  for (int rank = 0; rank < 32; ++rank) {
    good << 31 - rank << "\n";
    wrong << (rank == 20 ? 19 : rank) << "\n";
  }
  good.close();
  wrong.close();
  std::ofstream(folder / "scenario.yaml") << base_text();
  const auto load = [&](const std::string& file) {
    return load_scenario((folder / "scenario.yaml").string(), {"parallelism.placement={file: " + file + "}"});
  };
  const RankPlacement placement = load("gpus.txt").parallelism.placement;
  EXPECT_EQ(placement.kind, RankPlacement::Kind::listed);
  ASSERT_EQ(placement.gpus.size(), 32U);
  EXPECT_EQ(placement.gpus[3], 28U);
  const auto message = [&](const std::string& file) -> std::string {
    try {
      load(file);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("wrong.txt"),
            (folder / "wrong.txt").string() + ":21:1: GPU 19 is given to rank 19 and to rank 20, expected each GPU once");
  EXPECT_THAT(message("gpu.txt"), testing::HasSubstr("did you mean"));
  std::filesystem::remove_all(folder);
}

TEST(HierarchicalAllReduce, NeedsEquallyManyRanksOnEachNode) {
  try {
    parse_scenario(base_text(), "s.yaml",
                   {"training.hierarchical_all_reduce=true", "parallelism={tp: 4, sp: true, pp: 1, dp: 6}",
                    "cluster={preset: dgx-h100, gpus: 24, gpus_per_node: 6, nics_per_node: 6}", "training.global_batch=12"});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("with 2 members of a data-parallel group on one node and 1 on another"));
  }
}

TEST(HierarchicalAllReduce, NeedsNeighbouringRanksOnANode) {
  try {
    parse_scenario(base_text(), "s.yaml",
                   {"training.hierarchical_all_reduce=true", "parallelism={tp: 1, pp: 1, dp: 32, placement: round-robin}",
                    "training.global_batch=32"});
    FAIL() << "accepted";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("expected parallelism.placement packed"));
  }
}

}  // namespace
}  // namespace tandem::scenarios::fabric_errors_test
