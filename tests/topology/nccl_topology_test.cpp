#include "topology/nccl_topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include "topology/cluster.h"
#include "topology/layouts.h"

namespace tandem::topology::nccl_topology_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

std::string file(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(TANDEM_SOURCE_DIR "/tests/topology/data/" + name).rdbuf();
  return text.str();
}

NodeNetwork network(const std::string& xml) { return network_of(read_nccl_topology(xml)); }

std::vector<std::string> ports(const PcieSpec& pcie) {
  std::vector<std::string> list;
  for (const PcieSpec::Port& port : pcie.ports) list.push_back(port.name);
  return list;
}

// 32 GT/s on 16 lanes, of which 128 of 130 bits are data.
constexpr double gen5_x16 = 32.0 * 16 / 8 * 128 / 130;
constexpr double gen4_x16 = gen5_x16 / 2;

TEST(NcclTopology, EachGpuHasTheNicBelowItsSwitch) {
  const NodeNetwork node = network(file("one-nic-per-gpu.xml"));
  EXPECT_EQ(node.gpus, 8);
  EXPECT_EQ(node.nics, 8);  // without the two that are nearest to no GPU
  EXPECT_DOUBLE_EQ(node.nvlink_GBps, 18 * 25);
  EXPECT_DOUBLE_EQ(node.nic_gbps, 400);
  EXPECT_THAT(node.pcie.nic_of_gpu, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  ASSERT_THAT(node.pcie.ports, SizeIs(16));  // the GPU's link to the switch, and the NIC's
  EXPECT_EQ(node.pcie.ports[0].name, "pcie 0000:11:00.0");
  EXPECT_EQ(node.pcie.ports[1].name, "pcie 0000:12:00.0");
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_DOUBLE_EQ(node.pcie.ports[i].GBps, gen5_x16);
    EXPECT_THAT(node.pcie.ports[i].gpus, ElementsAre(static_cast<std::int64_t>(i / 2)));
  }
}

TEST(NcclTopology, TheGraphHasEveryPart) {
  const Node node = read_nccl_topology(file("one-nic-per-gpu.xml"));
  std::map<Node::Part::Kind, int> parts;
  for (const auto vertex : boost::make_iterator_range(boost::vertices(node.graph))) ++parts[node.graph[vertex].kind];
  EXPECT_EQ(parts[Node::Part::Kind::cpu], 2);
  EXPECT_EQ(parts[Node::Part::Kind::pcie], 8 + 10);  // switches and cards
  EXPECT_EQ(parts[Node::Part::Kind::gpu], 8);
  EXPECT_EQ(parts[Node::Part::Kind::nic], 10);
  EXPECT_EQ(parts[Node::Part::Kind::nvswitch], 4);
  // PCIe and lines: a tree below each CPU; one wire between the CPUs; each GPU to each NVSwitch.
  EXPECT_EQ(boost::num_edges(node.graph), 8 + 8 + 10 + 10 + 1 + 8 * 4);
}

TEST(NcclTopology, GpusShareNicsAndTheSwitchOnTheWay) {
  const NodeNetwork node = network(file("nics-behind-shared-switches.xml"));
  EXPECT_EQ(node.nics, 4);
  EXPECT_DOUBLE_EQ(node.nvlink_GBps, 12 * 25);
  EXPECT_THAT(node.pcie.nic_of_gpu, ElementsAre(0, 1, 0, 1, 2, 3, 2, 3));  // in turn, on their own CPU
  const auto& all = node.pcie.ports;
  ASSERT_THAT(all, SizeIs(8 + 4 + 4));
  const auto port = [&](const std::string& name) { return *std::ranges::find(all, name, &PcieSpec::Port::name); };
  EXPECT_THAT(port("pcie 0000:11:00.0").gpus, ElementsAre(0));
  EXPECT_THAT(port("pcie 0000:10:00.0").gpus, ElementsAre(0, 1));  // the switch
  EXPECT_THAT(port("pcie 0000:38:00.0").gpus, ElementsAre(0, 2));  // NIC 0
  EXPECT_DOUBLE_EQ(port("pcie 0000:10:00.0").GBps, gen4_x16);
}

// Both GPUs below a switch use a NIC of 24 GB/s each, over one link of 31.5 GB/s: it holds both up. A GPU's own link and a NIC's
// never do. A ring over two nodes' first two GPUs has two channels, each on its own NIC, but both on that link: 2 * 31.5 / 2, not
// 2 * 24.
TEST(NcclTopology, AClusterKeepsThePortsThatCanHoldUp) {
  const NodeNetwork node = network(file("nics-behind-shared-switches.xml"));
  ClusterSpec spec;
  spec.gpus = 32;
  spec.gpus_per_node = node.gpus;
  spec.nics_per_node = node.nics;
  spec.nvlink_GBps = node.nvlink_GBps;
  spec.nic_gbps = node.nic_gbps;
  spec.nic_efficiency = 0.96;
  spec.pcie = node.pcie;
  spec.fabric = {.rail_optimized = false};
  const Cluster cluster(spec);
  EXPECT_THAT(ports(cluster.spec().pcie),
              ElementsAre("pcie 0000:10:00.0", "pcie 0000:20:00.0", "pcie 0000:50:00.0", "pcie 0000:60:00.0"));
  const Paths ring = lay_group(cluster, std::vector<std::uint32_t>{0, 1, 8, 9}).paths.front();
  double rate = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : ring.crossings)
    rate = std::min(rate, cluster.link(crossing.link).capacity / crossing.multiplicity);
  EXPECT_DOUBLE_EQ(ring.channels * rate, gen4_x16 * 1e9);
}

/// One CPU, with `inside` it.
std::string on_cpu(const std::string& inside) {
  return "<system version=\"1\">\n<cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" modelid=\"143\">\n" + inside +
         "</cpu>\n</system>\n";
}

std::string gpu(int dev, const std::string& inside = "",
                const std::string& link = "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"") {
  const std::string number = std::to_string(dev);
  return "<pci busid=\"0000:1" + number + ":00.0\" class=\"0x030200\" " + link + "><gpu dev=\"" + number +
         "\" sm=\"80\" rank=\"" + number + "\">" + inside + "</gpu></pci>\n";
}

std::string nic(int dev, const std::string& speed = "speed=\"100000\"", const std::string& lanes = "16") {
  const std::string number = std::to_string(dev);
  return "<pci busid=\"0000:2" + number + ":00.0\" class=\"0x020000\" link_speed=\"8.0 GT/s PCIe\" link_width=\"" + lanes +
         "\"><nic><net name=\"mlx5_" + number + "\" dev=\"" + number + "\" " + speed + "/></nic></pci>\n";
}

TEST(NcclTopology, TurnsMirrorBits) {
  std::string parts;
  for (int i = 0; i < 8; ++i) parts += gpu(i) + (i < 4 ? nic(i) : "");
  EXPECT_THAT(network(on_cpu(parts)).pcie.nic_of_gpu, ElementsAre(0, 2, 1, 3, 0, 2, 1, 3));
}

TEST(NcclTopology, OfEquallyNearNicsTheWidestWayIsTaken) {
  const NodeNetwork node = network(on_cpu(gpu(0) + gpu(1) + nic(0, "speed=\"100000\"", "8") + nic(1)));
  EXPECT_EQ(node.nics, 1);  // PCIe 3 x8 carries 7.9 GB/s, less than the 12.5 of the NIC
  EXPECT_THAT(node.pcie.nic_of_gpu, ElementsAre(0, 0));
  EXPECT_EQ(node.pcie.ports[1].name, "pcie 0000:21:00.0");
}

TEST(NcclTopology, SeveralNicsPerGpuAreTakenInRuns) {
  const NodeNetwork node = network(on_cpu(gpu(0) + gpu(1) + nic(0) + nic(1) + nic(2) + nic(3)));
  EXPECT_EQ(node.nics, 4);
  EXPECT_THAT(node.pcie.nic_of_gpu, SizeIs(0));  // as without one: the i-th run of two is GPU i's
  EXPECT_THAT(ports(node.pcie), ElementsAre("pcie 0000:10:00.0", "pcie 0000:11:00.0"));
}

// Two NICs of 25 GB/s each behind a GPU's link of 31.5: narrower than both, though not than either.
TEST(NcclTopology, APortIsHeldAgainstAllNicsBehindIt) {
  std::string parts = gpu(0) + gpu(1);
  for (int i = 0; i < 4; ++i) parts += nic(i, "speed=\"200000\"", "64");
  const NodeNetwork node = network(on_cpu(parts));
  ClusterSpec spec;
  spec.gpus = 4;
  spec.gpus_per_node = 2;
  spec.nics_per_node = node.nics;
  spec.nvlink_GBps = 300;
  spec.nic_gbps = node.nic_gbps;
  spec.pcie = node.pcie;
  const Cluster cluster(spec);
  EXPECT_THAT(ports(cluster.spec().pcie), ElementsAre("pcie 0000:10:00.0", "pcie 0000:11:00.0"));
  const Paths pair = lay_pair(cluster, 0, 2).paths.front();
  double rate = std::numeric_limits<double>::infinity();
  for (const Crossing& crossing : pair.crossings)
    rate = std::min(rate, cluster.link(crossing.link).capacity / crossing.multiplicity);
  EXPECT_DOUBLE_EQ(pair.channels * rate, gen4_x16 * 1e9);
}

TEST(NcclTopology, SpeedsFollowTheEncodingOrNcclsDefault) {
  const auto rate = [](const std::string& speed, const std::string& width) {
    const std::string link = "link_speed=\"" + speed + "\" link_width=\"" + width + "\"";
    return network(on_cpu(gpu(0, "", link) + nic(0))).pcie.ports.front().GBps;
  };
  EXPECT_DOUBLE_EQ(rate("16.0 GT/s PCIe", "16"), gen4_x16);
  EXPECT_DOUBLE_EQ(rate("16 GT/s", "8"), gen4_x16 / 2);
  EXPECT_DOUBLE_EQ(rate("5.0 GT/s PCIe", "16"), 5.0 * 16 / 8 * 0.8);
  EXPECT_DOUBLE_EQ(rate("", "0"), gen4_x16 / 2);
}

TEST(NcclTopology, TheOtherSocketsNicIsReachedOverTheSocket) {
  const std::string xml = "<system><cpu numaid=\"0\" vendor=\"AuthenticAMD\">" + gpu(0) +
                          "</cpu><cpu numaid=\"1\" vendor=\"AuthenticAMD\">" + gpu(1) + nic(0) + "</cpu></system>";
  const PcieSpec pcie = network(xml).pcie;
  EXPECT_THAT(ports(pcie), ElementsAre("pcie 0000:10:00.0", "cpu0-cpu1", "pcie 0000:20:00.0", "pcie 0000:11:00.0"));
  EXPECT_EQ(pcie.ports[1].GBps, 16);
  EXPECT_THAT(pcie.ports[1].gpus, ElementsAre(0));
}

TEST(NcclTopology, GraceReachesItsCpuOverC2c) {
  const NodeNetwork node = network(on_cpu(gpu(0, "<c2c bw=\"44712\" count=\"10\"/>") + nic(0)));
  EXPECT_EQ(node.pcie.ports.front().name, "c2c 0000:10:00.0");
  EXPECT_DOUBLE_EQ(node.pcie.ports.front().GBps, 447.12);
}

/// A text, and the last place in it at which `place` begins, where the error must point.
struct Wrong {
  std::string name;
  std::string xml;
  std::string place;
  std::string words;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongXml : public testing::TestWithParam<Wrong> {};

TEST_P(WrongXml, IsRefusedAtItsPlace) {
  const std::string before = GetParam().xml.substr(0, GetParam().xml.rfind(GetParam().place));
  try {
    network(GetParam().xml);
    FAIL() << "accepted";
  } catch (const XmlError& error) {
    EXPECT_THAT(error.what(), HasSubstr(GetParam().words));
    EXPECT_THAT(error.what(), HasSubstr("expected"));
    EXPECT_EQ(error.line, 1 + std::ranges::count(before, '\n'));
    EXPECT_EQ(error.column, static_cast<int>(before.size() - before.find_last_of('\n')));
  }
}

const std::string to_switch = "<nvlink target=\"0000:c7:00.0\" count=\"12\" tclass=\"0x068000\"/>";
const std::string to_gpu = "<nvlink target=\"0000:11:00.0\" count=\"2\" tclass=\"0x030200\"/>";
std::string link_to(int dev, int count) {
  return "<nvlink target=\"0000:1" + std::to_string(dev) + ":00.0\" count=\"" + std::to_string(count) +
         "\" tclass=\"0x030200\"/>";
}
const std::string gpu_3 = "<pci busid=\"0\" link_speed=\"\" link_width=\"0\"><gpu dev=\"3\" sm=\"80\"/></pci>\n";

const Wrong wrong[] = {
    {"NotClosed", "<system>\n<cpu numaid=\"0\">\n</system>\n", "system>", "is no XML"},
    {"NotNccls", "<graphs version=\"1\"/>\n", "<graphs", "no element <system>"},
    {"NoGpu", on_cpu(nic(0)), "<system", "has no <gpu>"},
    {"SameBusid", on_cpu(gpu(0) + gpu(0)), "<pci", "busid 0000:10:00.0 like another"},
    {"SameDev", on_cpu(gpu_3 + gpu(3)), "<gpu", "dev 3 like another"},
    {"NoSpeed", on_cpu(gpu(0) + nic(0, "")), "<net", "<net> has no attribute `speed`"},
    {"SpeedZero", on_cpu(gpu(0) + nic(0, "speed=\"0\"")), "<net", "speed is `0`"},
    {"NoWidth", on_cpu(gpu(0, "", "link_speed=\"16 GT/s\"")), "<pci", "no attribute `link_width`"},
    {"NoUnit", on_cpu(gpu(0, "", "link_speed=\"16\" link_width=\"16\"")), "<pci", "link_speed is `16`"},
    {"UnequalNvlinks", on_cpu(gpu(0, to_switch) + gpu(1)), "<gpu", "NVLinks of 0 GB/s, another GPU 300"},
    {"NoNvswitch", on_cpu(gpu(0, to_gpu)), "<nvlink", "joins GPU 0000:10:00.0 to 0000:11:00.0 without a switch"},
    {"HybridMesh", on_cpu(gpu(0, link_to(1, 2)) + gpu(1, link_to(0, 2)) + gpu(2)), "<nvlink target=\"0000:11:00.0\"",
     "has such links to 1 of 2 other GPUs"},
    {"UnequalMesh",
     on_cpu(gpu(0, link_to(1, 2) + link_to(2, 1)) + gpu(1, link_to(0, 2) + link_to(2, 1)) +
            gpu(2, link_to(0, 1) + link_to(1, 1))),
     "<nvlink target=\"0000:12:00.0\" count=\"1\" tclass=\"0x030200\"/></gpu></pci>\n<pci busid=\"0000:11",
     "equally many links between every two"},
    {"TwoHosts", "<system>\n<cpu numaid=\"0\" host_hash=\"0x1\"/>\n<cpu numaid=\"0\" host_hash=\"0x2\"/>\n</system>", "<cpu",
     "another host's"},
};
INSTANTIATE_TEST_SUITE_P(NcclTopology, WrongXml, testing::ValuesIn(wrong), [](const auto& test) { return test.param.name; });

// Three GPUs, each with two NVLinks to both others: 4 * 25 GB/s. RCCL's xGMI links have no rate there.
TEST(NcclTopology, GpusWithLinksToAllOthersAreAMesh) {
  const NodeNetwork nvlink = network(on_cpu(gpu(0, link_to(1, 2) + link_to(2, 2)) + gpu(1, link_to(0, 2) + link_to(2, 2)) +
                                            gpu(2, link_to(0, 2) + link_to(1, 2)) + nic(0)));
  EXPECT_TRUE(nvlink.is_mesh);
  EXPECT_DOUBLE_EQ(nvlink.nvlink_GBps, 100);
  const auto xgmi = [](int dev) {
    return "<xgmi target=\"0000:1" + std::to_string(dev) + ":00.0\" count=\"1\" tclass=\"0x120000\"/>";
  };
  const NodeNetwork amd = network(on_cpu(gpu(0, xgmi(1)) + gpu(1, xgmi(0)) + nic(0)));
  EXPECT_TRUE(amd.is_mesh);
  EXPECT_EQ(amd.nvlink_GBps, 0);
  EXPECT_FALSE(network(file("one-nic-per-gpu.xml")).is_mesh);
}

// As a file for NCCL_TOPO_FILE: classes alone, in the order of a hypervisor. GPU 0 is the one with the lowest busid.
TEST(NcclTopology, DevicesByClassAreNumberedByBusid) {
  const auto device = [](const std::string& busid, const std::string& pci_class) {
    return "<pci busid=\"" + busid + "\" class=\"" + pci_class + "\" link_speed=\"16 GT/s\" link_width=\"16\"/>\n";
  };
  const auto cpu = [](const std::string& numa, const std::string& inside) {
    return "<cpu numaid=\"" + numa + "\"><pci busid=\"ffff:ff:0" + numa +
           ".0\" class=\"0x060400\" link_speed=\"16 GT/s\" link_width=\"16\">" + inside + "</pci></cpu>\n";
  };
  const NodeNetwork node =
      network("<system version=\"1\">" + cpu("0", device("0003:00:00.0", "0x030200") + device("0103:00:00.0", "0x020700")) +
              cpu("1", device("0001:00:00.0", "0x030200") + device("0104:00:00.0", "0x020700")) + "</system>");
  EXPECT_EQ(node.gpus, 2);
  EXPECT_EQ(node.nics, 2);
  EXPECT_THAT(node.pcie.nic_of_gpu, ElementsAre(1, 0));
  EXPECT_EQ(node.nic_gbps, 0);
  EXPECT_EQ(node.nvlink_GBps, 0);
}

// One GPU has a switch with a NIC, and another switch away hang the other NIC and the other GPU: to NCCL both NICs are behind
// several switches of either GPU (PXB), and the GPUs take one each.
TEST(NcclTopology, NicsBehindSeveralSwitchesAreEquallyNear) {
  const auto bridge = [](const std::string& busid, const std::string& inside) {
    return "<pci busid=\"" + busid + "\" class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">" + inside +
           "</pci>\n";
  };
  const std::string deep = bridge("5", bridge("6", gpu(1)) + nic(0)), other = bridge("7", nic(1));
  const NodeNetwork node = network(on_cpu(bridge("1", bridge("2", bridge("3", gpu(0)) + deep + other))));
  EXPECT_THAT(node.pcie.nic_of_gpu, ElementsAre(0, 1));
}

TEST(NcclTopology, NestingHasALimit) {
  std::string deep;
  for (int i = 0; i < 20'000; ++i) deep += "<pci busid=\"" + std::to_string(i) + "\" link_speed=\"\" link_width=\"0\">";
  EXPECT_THROW(network("<system><cpu numaid=\"0\">" + deep), XmlError);  // not closed
  for (int i = 0; i < 20'000; ++i) deep += "</pci>";
  EXPECT_THROW(network("<system><cpu numaid=\"0\">" + deep + "</cpu></system>"), XmlError);
}

TEST(NcclTopology, NicsThatCannotBeSharedOutAreRefused) {
  const auto sentence = [](const std::string& xml) {
    try {
      network(xml);
    } catch (const TopologyError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(sentence(on_cpu(gpu(0) + gpu(1) + nic(0) + nic(1) + nic(2))), HasSubstr("3 NICs are nearest to 2 GPUs"));
  const std::string slower = "<system><cpu numaid=\"0\">" + gpu(0) + nic(0) + "</cpu><cpu numaid=\"1\">" + gpu(1) +
                             nic(1, "speed=\"50000\"") + "</cpu></system>";
  EXPECT_THAT(sentence(slower), AllOf(HasSubstr("differ in speed"), HasSubstr("mlx5_0 and mlx5_1")));
}

}  // namespace
}  // namespace tandem::topology::nccl_topology_test
