// Clusters as their owners describe them: topologies of Slurm, ibnetdiscover's output, InfraGraph. What is imported is read back
// as the preset of a scenario, and its fabric asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "runtime/base/input_error.h"
#include "scenarios/reading/load.h"
#include "studies/interop/ibnetdiscover.h"
#include "studies/interop/import_source.h"
#include "tests/runtime/temporary_folder.h"
#include "topology/cluster.h"
#include "topology/fabric.h"

namespace tandem::studies::interop_clusters_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Clusters : public testing::Test {
 protected:
  TemporaryFolder folder_;

  ImportResult import(const std::string& from, const std::string& text, ImportRequest request = {}) {
    std::ofstream(folder_ / "in") << text;
    request.paths = {folder_ / "in"};
    for (const ImportSource& source : import_sources())
      if (source.name == from) return import_files(source, request);
    throw std::logic_error("no source " + from);
  }

  std::string refusal(const std::string& from, const std::string& text, ImportRequest request = {}) {
    try {
      import(from, text, std::move(request));
    } catch (const InputError& error) {
      const std::string what = error.what();
      return what.starts_with(folder_ / "in") ? what.substr((folder_ / "in").size()) : what;
    }
    return "accepted";
  }

  /// The cluster of a scenario whose preset is what was imported.
  ClusterSpec cluster_of(const ImportResult& result) {
    std::ofstream(folder_ / "cluster.yaml") << result.out;
    std::ofstream(folder_ / "s.yaml")
        << "model: {layers: 2, hidden: 512, heads: 8, ffn: 1024, vocab: 4096}\ncluster: ./cluster.yaml\n"
        << "training: {sequence: 512, micro_batch: 1, global_batch: " << gpus_in(result.out) << "}\n";
    return load_scenario(folder_ / "s.yaml", {}).cluster;
  }

  /// The number behind "gpus: ".
  static std::string gpus_in(const std::string& text) {
    const std::size_t at = text.find("\ngpus: ") + 7;
    return text.substr(at, text.find('\n', at) - at);
  }

  static std::string name_of_leaf(const ClusterSpec& spec, std::int64_t nic) {
    const Fabric fabric(spec);
    return fabric.switches()[fabric.leaf_of(nic)].name;
  }
};

// Two switches of two and one nodes below one above them: what they pass up is what their NICs send.
TEST_F(Clusters, ATreeOfSlurmIsAFabric) {
  const ImportResult result = import("slurm-topology",
                                     "# leaves\nSwitchName=s1 Nodes=tux[8-9]\nswitchname=s2 nodes=tux10 LinkSpeed=100\n"
                                     "SwitchName=top \\\n  Switches=s[1-2]\n",
                                     {.cluster = "dgx-a100"});
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(spec.gpus, 24);
  EXPECT_EQ(spec.nic_gbps, 200);
  const Fabric fabric(spec);
  EXPECT_EQ(fabric.switches().size(), 3U);
  ASSERT_EQ(fabric.bundles().size(), 2U);
  EXPECT_EQ(fabric.bundles()[0].cables, 16U);
  EXPECT_EQ(fabric.bundles()[1].cables, 8U);
  EXPECT_DOUBLE_EQ(fabric.capacity(0), 16 * 200e9 / 8 * spec.nic_efficiency);
  for (std::int64_t nic = 0; nic < 24; ++nic) EXPECT_EQ(name_of_leaf(spec, nic), nic < 16 ? "s1" : "s2");
  EXPECT_THAT(result.out, HasSubstr("hosts:\n  - \"tux[8-10]\"\n"));
  EXPECT_THAT(result.assumed, Contains(HasSubstr("8 GPUs per host, as in dgx-a100")));
  EXPECT_THAT(result.assumed, Contains(HasSubstr("no rates of links")));
  EXPECT_THAT(result.ignored, ElementsAre(HasSubstr("LinkSpeed")));
}

TEST_F(Clusters, RootsThatNothingJoinsAreJoined) {
  const ImportResult result = import("slurm-topology", "SwitchName=a Nodes=n[1-2]\nSwitchName=b Nodes=n[2-4]\n");
  EXPECT_THAT(result.assumed, Contains(HasSubstr("a switch top above the 2 that nothing in the file joins: a, b")));
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("n2 of several switches counts where it stands first")));
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(name_of_leaf(spec, 1 * 8), "a");
  EXPECT_EQ(Fabric(spec).switches().back().name, "top");
}

TEST_F(Clusters, ThatTopologyOfAYamlIsReadThatTheClusterHas) {
  const std::string text =
      "- topology: flat\n  flat: true\n"
      "- topology: blocks\n  cluster_default: false\n  block: {block_sizes: [2, 4], blocks: [{block: b1, nodes: 'm[1-2]'}, "
      "{block: b2, "
      "nodes: 'm[3-4]'}]}\n"
      "- topology: tree\n  cluster_default: true\n  tree:\n    switches:\n      - {switch: root, children: 'l[1-2]'}\n"
      "      - {switch: l1, nodes: '01,02'}\n      - {switch: l2, nodes: '03'}\n";
  const ImportResult tree = import("slurm-topology", text);
  EXPECT_EQ(cluster_of(tree).gpus, 24);
  EXPECT_THAT(tree.out, HasSubstr("hosts:\n  - \"[01-03]\"\n"));
  EXPECT_THAT(tree.ignored, ElementsAre("topology flat", "topology blocks"));
  const ImportResult blocks = import("slurm-topology", text, {.overrides = {"topology=blocks"}});
  EXPECT_EQ(cluster_of(blocks).gpus_per_node, 2 * 4);
  EXPECT_THAT(refusal("slurm-topology", text, {.overrides = {"topology=tre"}}), HasSubstr("did you mean `tree`"));
  EXPECT_THAT(refusal("slurm-topology", text, {.overrides = {"topology=flat"}}),
              HasSubstr("flat, ring and torus3d say nothing of switches"));
}

// Three blocks of 18 hosts, one of which has one more: NVLink domains of 72 GPUs.
TEST_F(Clusters, BlocksAreNvlinkDomains) {
  const std::string text =
      "BlockName=b1 Nodes=n[01-18]\nBlockName=b2 Nodes=n[21-38]\nBlockName=b3 Nodes=n[41-59]\nBlockSizes=18,36\n";
  const ImportResult result = import("slurm-topology", text);
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(spec.gpus, 3 * 72);
  EXPECT_EQ(spec.gpus_per_node, 72);
  EXPECT_EQ(spec.gpu.name, "gb200");
  EXPECT_THAT(result.out, HasSubstr("hosts_per_node: 18\nhosts:\n  - \"n[01-18,21-38,41-58]\"\n"));
  EXPECT_THAT(result.warnings, ElementsAre(AllOf(HasSubstr("1 nodes are left out"), HasSubstr("n59"))));
  // With a preset whose node is a host, a block is a switch.
  const ClusterSpec hosts = cluster_of(import("slurm-topology", text, {.cluster = "dgx-h100"}));
  EXPECT_EQ(hosts.gpus, 55 * 8);
  EXPECT_EQ(name_of_leaf(hosts, 18 * 8), "b2");
}

TEST_F(Clusters, RefuseWhatSlurmRefuses) {
  const auto refused = [&](const std::string& text) { return refusal("slurm-topology", text); };
  EXPECT_THAT(refused("BlockName=b Nodes=n[1-8]\nBlockSizes=4,12\n"),
              HasSubstr(":2:12: the block size 12 is not the base block size 4"));
  EXPECT_THAT(refused("BlockName=b Nodes=n[1-2]\nBlockSizes=4\n"), HasSubstr(":1:1: block `b` has 2 nodes, expected at least"));
  EXPECT_THAT(refused("# BlockName=b Nodes=n[1-2]\nBlockSizes=4\n"), HasSubstr(":2:12: has no block and no switch"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n"), HasSubstr(":2:1: switch `a` stands there twice"));
  EXPECT_THAT(refused("SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1\n"),
              HasSubstr(":1:1: switch `a` has a switch `c` below it that is not there"));
  EXPECT_THAT(refused("SwitchName=a Switches=b\nSwitchName=b Switches=a,c\nSwitchName=c Nodes=n1\n"),
              HasSubstr("below it and above it"));
  EXPECT_THAT(refused("SwitchName=a Switches=b Nodes=n1\nSwitchName=b Nodes=n2\n"), HasSubstr("both nodes and switches"));
  EXPECT_THAT(refused("SwitchName=a Nodes=n[3-1]\n"), HasSubstr(":1:20: the host list `n[3-1]`"));
  EXPECT_THAT(refused("SwitchName=a Nodes=0x155dfffd33ff7d\n"), HasSubstr("is the GUID of an InfiniBand port"));
  EXPECT_THAT(refused("SwitchName=a Node=n1\n"), HasSubstr(":1:14: topology.conf has no `Node` there; did you mean `Nodes`?"));
  EXPECT_THAT(refused("NodeName=n1 Sockets=2\n"), HasSubstr("topology.conf has no `NodeName` there"));
  EXPECT_THAT(refused("- topology: t\n  tree: {switches: a}\n"), HasSubstr(":2:20: tree.switches is `a`"));
  EXPECT_THAT(refused("- topology: t\n  tree: {switches: [{switch: a}]}\n"), HasSubstr("no switch has nodes below it"));
  EXPECT_THAT(refused("topology/tree\n"), HasSubstr("expected Slurm's topology.yaml"));
  EXPECT_THAT(refused("switches: {}\n"), HasSubstr("as a model of topograph"));
  EXPECT_THAT(refusal("slurm-topology", "SwitchName=a Nodes=n[1-3]\n", {.gpus = 16}),
              HasSubstr("--gpus: 16 GPUs on the 3 hosts"));
  EXPECT_THAT(refusal("slurm-topology", "SwitchName=a Nodes=n[1-3]\n", {.cluster = "gb200-nvl72"}),
              HasSubstr("does not say which hosts share one"));
}

/// A fabric of two leaves and two spines, whose cables are listed once, from the lower switch. Hosts have two adapters, one on
/// each leaf; h2's are listed in the other order. A storage host has one, and a switch of its own.
std::string two_rails() {
  std::string text = "#\n# Topology file: generated on Tue\n\n";
  const auto node = [&](const std::string& head, const std::string& ports) {
    text += "vendid=0x2c9\n" + head + "\n" + ports + "\n";
  };
  node("Switch\t64 \"S-0\"\t\t# \"MF0;leaf0:MQM/U1\" enhanced port 0 lid 1 lmc 0",
       "[1]\t\"H-10\"[1](10) \t\t# \"h1 mlx5_0\" lid 5 4xNDR\n[2]\t\"H-20\"[1](20) \t\t# \"h2 mlx5_0\" lid 5 4xNDR\n"
       "[33]\t\"S-2\"[1]\t\t# \"spine0\" lid 3 4xNDR\n[34]\t\"S-2\"[2]\t\t# \"spine0\" lid 3 4xNDR\n[35]\t\"S-3\"[1]\t\t# "
       "\"spine1\" lid 3 4xNDR\n"
       "[36]\t\"S-3\"[2]\t\t# \"spine1\" lid 3 4xNDR\n[65]\t\"H-99\"[1](99) \t\t# \"Mellanox Technologies Aggregation Node\" lid "
       "9 4xNDR\n");
  node("Switch\t64 \"S-1\"\t\t# \"leaf1\" enhanced port 0 lid 2 lmc 0",
       "[1]\t\"H-11\"[1](11) \t\t# \"h1 mlx5_1\" lid 5 4xNDR\n[2]\t\"H-21\"[1](21) \t\t# \"h2 mlx5_1\" lid 5 4xNDR\n"
       "[33]\t\"S-2\"[3]\t\t# \"spine0\" lid 3 4xNDR\n[34]\t\"S-2\"[4]\t\t# \"spine0\" lid 3 4xNDR\n[35]\t\"S-3\"[3]\t\t# "
       "\"spine1\" lid 3 4xNDR\n"
       "[36]\t\"S-3\"[4]\t\t# \"spine1\" lid 3 4xNDR\n");
  node("Switch\t64 \"S-2\"\t\t# \"spine0\" enhanced port 0 lid 3 lmc 0", "[64]\t\"S-4\"[1]\t\t# \"storage\" lid 7 4xHDR\n");
  node("Switch\t64 \"S-3\"\t\t# \"spine1\" enhanced port 0 lid 4 lmc 0", "");
  node("Switch\t40 \"S-4\"\t\t# \"storage\" enhanced port 0 lid 7 lmc 0",
       "[2]\t\"H-30\"[1](30) \t\t# \"nas HCA-1\" lid 8 4xHDR\n");
  node("Ca\t1 \"H-21\"\t\t# \"h2 mlx5_1\"", "[1](21) \t\"S-1\"[2]\t\t# lid 5 lmc 0 \"leaf1\" lid 2 4xNDR\n");
  node("Ca\t1 \"H-20\"\t\t# \"h2 mlx5_0\"", "");
  for (const char* id : {"10", "11"})
    node("Ca\t1 \"H-" + std::string(id) + "\"\t\t# \"h1 mlx5_" + std::string(id).substr(1) + "\"", "");
  node("Ca\t1 \"H-30\"\t\t# \"nas HCA-1\"", "");
  node("Ca\t1 \"H-99\"\t\t# \"Mellanox Technologies Aggregation Node\"", "");
  return text;
}

TEST_F(Clusters, AnInfinibandFabricIsReadByTheNamesOfAdapters) {
  const ImportResult result = import("ibnetdiscover", two_rails());
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(spec.gpus, 16);
  EXPECT_EQ(spec.nics_per_node, 2);
  EXPECT_EQ(spec.nic_gbps, 400);
  EXPECT_THAT(result.out, HasSubstr("hosts:\n  - \"h[1-2]\"\n"));
  for (std::int64_t nic = 0; nic < 4; ++nic) EXPECT_EQ(name_of_leaf(spec, nic), nic % 2 == 0 ? "MF0;leaf0:MQM/U1" : "leaf1");
  const Fabric fabric(spec);
  // Both spines are one, each leaf with all four cables to it; the storage's switch is on no way between hosts.
  ASSERT_EQ(fabric.bundles().size(), 2U);
  EXPECT_EQ(fabric.bundles()[0].cables, 4U);
  EXPECT_DOUBLE_EQ(fabric.capacity(1), 4 * 400e9 / 8 * spec.nic_efficiency);
  EXPECT_THAT(
      result.warnings,
      Contains(HasSubstr("1 of 3 hosts are left out, which have fewer NICs on the fabric than the 2 of the others: nas")));
  EXPECT_THAT(result.warnings, Contains(HasSubstr("1 of 5 switches are left out")));
  EXPECT_THAT(result.warnings, Contains(HasSubstr("1 adapters are left out, whose descriptions name no host")));
}

TEST(IbLinks, CarryWhatTheirEncodingLeaves) {
  EXPECT_DOUBLE_EQ(gbps_of_link("4xSDR"), 8);
  EXPECT_DOUBLE_EQ(gbps_of_link("4xQDR"), 32);
  EXPECT_DOUBLE_EQ(gbps_of_link("4xFDR10"), 40);
  EXPECT_DOUBLE_EQ(gbps_of_link("4xEDR"), 100);
  EXPECT_DOUBLE_EQ(gbps_of_link("2xHDR"), 100);
  EXPECT_DOUBLE_EQ(gbps_of_link("4xNDR"), 400);
  EXPECT_EQ(gbps_of_link("4x???"), 0);
}

TEST_F(Clusters, RefuseAFabricThatIsNone) {
  const auto refused = [&](const std::string& text) { return refusal("ibnetdiscover", text); };
  EXPECT_THAT(refused("vendid=0x2c9\nCa\t1 \"H-1\"\t# \"h1 HCA-1\"\n"), HasSubstr("lists no switch"));
  EXPECT_THAT(refused("Switch 8 \"S-1\" # \"s\"\n[1] \"H-1\"[1](1) # \"h HCA-1\" lid 1 4xNDR\n"),
              HasSubstr(":2:1: leads to `H-1`, which is not listed"));
  EXPECT_THAT(refused("Switch 8 \"S-1\" # \"s\"\nport 7 leads home\n"),
              HasSubstr(":2:1: `port 7 leads home` is no line of ibnetdiscover"));
  EXPECT_THAT(refused("[1] \"S-1\"[2]\n"), HasSubstr(":1:1: is a port of no node"));
  EXPECT_THAT(refused("Switch 8 \"S-1\"\n[1] \"S-2\"[1]\nSwitch 8 \"S-2\"\n[1] \"S-1\"[2]\n"),
              HasSubstr("expected both ends of a cable to agree"));
  EXPECT_THAT(refused("Switch 8 \"S-1\"\n[1] \"H-1\"[1]\nSwitch 8 \"S-2\"\n[1] \"H-2\"[1]\nCa 1 \"H-1\"\nCa 1 \"H-2\"\n"),
              HasSubstr("is a fabric in parts: no way leads from switch `S-1` to `S-2`"));
}

// ibsim's input: names for GUIDs, no rates; two ports of each adapter.
TEST_F(Clusters, RatesThatAreNotPrintedAreThoseOfThePreset) {
  const ImportResult result =
      import("ibnetdiscover",
             "Switch\t8 \"S1\"\n[1]\t\"A\"[1]\n[2]\t\"A\"[2]\n[3]\t\"S2\"[3]\n\nSwitch 8 \"S2\"\n[1]\t\"B\"[1]\n[2]\t\"B\"[2]\n"
             "[3]\t\"S1\"[3]\n\nHca 2 \"A\"\n[1]\t\"S1\"[1]\n[2]\t\"S1\"[2]\n\nHca 2 \"B\"\n[1]\t\"S2\"[1]\n[2]\t\"S2\"[2]\n",
             {.gpus = 4});
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(spec.gpus_per_node, 2);
  EXPECT_EQ(spec.nics_per_node, 2);
  EXPECT_EQ(spec.nic_gbps, 400);
  EXPECT_THAT(result.assumed, Contains(HasSubstr("NICs of 400 Gbit/s, as dgx-h100 has")));
  EXPECT_THAT(result.assumed, Contains(HasSubstr("cables between switches of 400 Gbit/s, as the NICs")));
  EXPECT_THAT(result.assumed, Contains(HasSubstr("each adapter is a host of its own")));
}

/// Two hosts of two xpus and two NICs, one on each of two leaves, and a spine with two cables from each.
constexpr const char* infrastructure = R"(
name: fabric
devices:
  - name: box
    components: [{name: gpu, choice: xpu, count: 2}, {name: cx, choice: device, count: 2}, {name: sw, choice: switch, count: 1}]
    links: [{name: nvlink, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 300}}}]
    edges: [{scheme: many2many, link: nvlink, ep1: {component: gpu}, ep2: {component: sw}}]
  - {name: cx, components: [{name: port, choice: port, count: 1}]}
  - {name: switch, components: [{name: port, choice: port, count: 8}]}
links:
  - {name: down, physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 100}}}
  - {name: up, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 25}}}
instances:
  - {name: host, device: box, count: 2}
  - {name: leaf, device: switch, count: 2}
  - {name: spine, device: switch, count: 1}
edges:
  - {scheme: one2one, link: down, ep1: {instance: 'host[0:2]', component: 'cx[0].port'}, ep2: {instance: 'leaf[0]', component: 'port[0:2]'}}
  - {scheme: one2one, link: down, ep1: {instance: host, component: 'cx[1].port[0]'}, ep2: {instance: 'leaf[1]', component: port}}
  - {scheme: one2one, link: up, ep1: {instance: leaf, component: 'port[4:6]'}, ep2: {instance: spine, component: 'port[0:4]'}}
)";

TEST_F(Clusters, AnInfrastructureOfInfragraphIsACluster) {
  const ImportResult result = import("infragraph", infrastructure);
  const ClusterSpec spec = cluster_of(result);
  EXPECT_EQ(spec.gpus, 4);
  EXPECT_EQ(spec.gpus_per_node, 2);
  EXPECT_EQ(spec.nics_per_node, 2);
  EXPECT_EQ(spec.nic_gbps, 100);
  EXPECT_EQ(spec.nvlink_GBps, 300);
  for (std::int64_t nic = 0; nic < 4; ++nic) EXPECT_EQ(name_of_leaf(spec, nic), "leaf." + std::to_string(nic % 2));
  const Fabric fabric(spec);
  ASSERT_EQ(fabric.bundles().size(), 2U);
  EXPECT_DOUBLE_EQ(fabric.capacity(0), 2 * 25e9 * spec.nic_efficiency);
  EXPECT_THAT(result.warnings, IsEmpty());
}

TEST_F(Clusters, OneHostWithoutEdgesIsACluster) {
  const ClusterSpec spec =
      cluster_of(import("infragraph",
                        "devices: [{name: box, components: [{name: gpu, choice: xpu, count: 4}]}]\nedges: []\n"
                        "instances: [{name: box, device: box, count: 1}]\n"));
  EXPECT_EQ(spec.gpus, 4);
  EXPECT_EQ(spec.nics_per_node, 0);
}

TEST_F(Clusters, RefuseAnInfrastructureWithItsPlace) {
  const auto changed = [](const std::string& from, const std::string& to) {
    std::string text = infrastructure;
    return text.replace(text.find(from), from.size(), to);
  };
  const auto refused = [&](const std::string& text) { return refusal("infragraph", text); };
  EXPECT_THAT(refused("infrastructure:\n  connections: [a.0.b]\n"),
              HasSubstr(":2:16: `connections` stands there, as in drafts of InfraGraph"));
  EXPECT_THAT(refused(changed("cx[0].port'", "cx[2].port'")), HasSubstr("`cx[2]` goes beyond the 2 that there are"));
  EXPECT_THAT(refused(changed("cx[0].port'", "nic[0]'")), HasSubstr("device `box` has no component `nic`"));
  EXPECT_THAT(refused(changed("link: down", "link: dwn")), HasSubstr("there is no link `dwn`; did you mean `down`?"));
  EXPECT_THAT(refused(changed("scheme: one2one", "scheme: ring")), HasSubstr("scheme is `ring`, expected one2one or many2many"));
  EXPECT_THAT(refused(changed("choice: xpu", "choice: cpu")), HasSubstr("no instance with xpus"));
  EXPECT_THAT(refused(changed("ep2: {instance: 'leaf[0]', component: 'port[0:2]'}",
                              "ep2: {instance: 'host[1]', component: 'cx[1].port'}")),
              HasSubstr("are joined without a switch"));
}

}  // namespace
}  // namespace tandem::studies::interop_clusters_test
