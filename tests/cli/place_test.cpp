// `tandem place`: never worse than packed, the same however often it is killed and however many jobs, and wrong input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "tests/cli/json_result.h"
#include "tests/cli/run_command.h"
#include "tests/cli/study.h"
#include "tests/studies/place_job.h"

namespace tandem::cli::place_test {
namespace {

using testing::HasSubstr;

constexpr int wrong_input = 2;

CommandResult place(const PlaceFolder& folder, const std::string& out, std::vector<std::string> more,
                    const CommandOptions& options = {}) {
  std::vector<std::string> arguments{"place", folder.scenario(), "--out", folder / out};
  if (std::ranges::find(more, "--moves") == more.end()) arguments.insert(arguments.end(), {"--moves", "400"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tandem(arguments, options);
}

nlohmann::json simulated(const PlaceFolder& folder, const std::string& out) {
  const CommandResult run =
      run_tandem({"simulate", folder.scenario(), "--set", "parallelism.placement={file: " + (folder / out) + "}", "--json", "-"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return nlohmann::json::parse(run.out);
}

std::vector<int> gpus_in(const std::string& file) {
  std::vector<int> gpus;
  std::istringstream lines(read_all(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("- ")) gpus.push_back(std::stoi(line.substr(2)));
  }
  return gpus;
}

TEST(Place, NeverTakesLongerThanPackedWhicheverNodesAreFree) {
  const PlaceFolder folder;
  std::mt19937 random(31);
  int faster = 0;
  for (int i = 0; i < 5; ++i) {
    std::vector<int> nodes(16);
    for (int node = 0; node < 16; ++node) nodes[static_cast<std::size_t>(node)] = node;
    std::ranges::shuffle(nodes, random);
    nodes.resize(8 + random() % 5);
    std::string list;
    for (const int node : nodes) list += (list.empty() ? "" : ",") + std::to_string(node);
    SCOPED_TRACE(list);
    const CommandResult run = place(folder, "p.yaml", {"--nodes", list, "--json", "-"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const nlohmann::json result = nlohmann::json::parse(run.out);
    const double packed = result["step_time_packed_s"], found = result["step_time_found_s"];
    EXPECT_LE(found, packed);
    faster += found < packed ? 1 : 0;
    EXPECT_DOUBLE_EQ(simulated(folder, "p.yaml")["step_time_s"].get<double>(), found);

    const std::vector<int> gpus = gpus_in(folder / "p.yaml");
    EXPECT_EQ(gpus.size(), 16U);
    EXPECT_EQ(std::set(gpus.begin(), gpus.end()).size(), 16U);
    for (const int gpu : gpus) EXPECT_NE(std::ranges::find(nodes, gpu / 2), nodes.end()) << "GPU " << gpu << " is not free";
    for (std::size_t rank = 0; rank < 16; rank += 2) EXPECT_EQ(gpus[rank] + 1, gpus[rank + 1]);
  }
  EXPECT_GT(faster, 2);
}

TEST(Place, TellsWhatMovedLower) {
  const PlaceFolder folder;
  const CommandResult run = place(folder, "p.yaml", {"--nodes", "0,1,4,5,2,3,6,7", "--json", folder / "p.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  for (const char* word :
       {"16 ranks on 8 of 8 free nodes, of 16", "instead of", "Links between nodes", "spine", "pp forward", "taken"})
    EXPECT_THAT(run.out, HasSubstr(word));
  const nlohmann::json result = nlohmann::json::parse(read_all(folder / "p.json"));
  EXPECT_GT(result["gain"].get<double>(), 0);
  EXPECT_EQ(result["nodes"], (nlohmann::json{{"needed", 8}, {"free", 8}, {"cluster", 16}}));
  EXPECT_LT(result["links"]["found"].back()["bytes"], result["links"]["packed"].back()["bytes"]);
  EXPECT_EQ(result["candidates"][0]["name"], "packed");
  // Each stage's rings, which packed go from pod to pod, come to a pod of their own.
  const auto dp = std::ranges::find(result["communicators"], "dp", [](const auto& family) { return family["family"]; });
  ASSERT_NE(dp, result["communicators"].end());
  EXPECT_EQ((*dp)["packed"], (nlohmann::json{{"core", 4}}));
  EXPECT_EQ((*dp)["found"], (nlohmann::json{{"pod", 4}}));
  EXPECT_EQ((*dp)["lower"], 4);
  EXPECT_EQ((*dp)["higher"], 0);
}

TEST(Place, IsTheSameForAnyNumberOfJobsAndAnotherSeedMayDiffer) {
  const PlaceFolder folder;
  std::string first, report;
  for (const char* jobs : {"1", "2", "5"}) {
    const std::string name = std::string("jobs") + jobs + ".yaml";
    const CommandResult run = place(folder, name, {"--nodes", "15,0-3,7,9-12", "--jobs", jobs});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    if (first.empty()) first = read_all(folder / name), report = run.out;
    EXPECT_EQ(read_all(folder / name), first);
    EXPECT_EQ(run.out, report);
  }
  EXPECT_EQ(place(folder, "seed.yaml", {"--nodes", "15,0-3,7,9-12", "--seed", "9"}).exit_code, 0);
}

TEST(Place, KilledAtAnyMomentComesToTheSameEndAndKeepsWhatWasDone) {
  const PlaceFolder folder;
  const std::vector<std::string> arguments{"--nodes", "15,0-3,7,9-12", "--moves", "3000"};
  const CommandResult whole = place(folder, "whole.yaml", arguments);
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  std::mt19937 random(405);
  int killed = 0;
  std::size_t kept = 0;
  Seconds longest = whole.wall;  // of the runs so far that came to an end: the machine may have got more to do
  for (int i = 0; i < 6; ++i) {
    const std::string name = "killed" + std::to_string(i) + ".yaml";
    for (int kill = 0; kill < 2; ++kill) {
      std::uniform_real_distribution<Seconds> anywhere(0.02, longest);
      const CommandResult run = place(folder, name, arguments, {.kill_after = anywhere(random)});
      killed += run.signal == SIGKILL ? 1 : 0;
      if (run.signal == SIGKILL && std::filesystem::exists(folder / name)) {
        EXPECT_EQ(read_all(folder / name), read_all(folder / "whole.yaml"));
      }
    }
    const std::string database = folder / ("killed" + std::to_string(i) + ".sqlite");
    const auto before = rows_of(database);
    kept += before.size();
    const CommandResult run = place(folder, name, arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    longest = std::max(longest, run.wall);
    EXPECT_EQ(read_all(folder / name), read_all(folder / "whole.yaml"));
    EXPECT_EQ(run.out, whole.out);
    // A simulation that ran twice would have another row: its start and seconds differ.
    const auto after = rows_of(database);
    for (const auto& [hash, row] : before) {
      ASSERT_TRUE(after.contains(hash));
      EXPECT_EQ(row, after.at(hash));
    }
  }
  EXPECT_GT(killed, 3);
  EXPECT_GT(kept, 0U) << "all kills came before the first row";
}

TEST(Place, RefusesWhatCannotBe) {
  const PlaceFolder folder;
  folder.write("nodes.txt", "# free\n0-3\n  4, 5 x6\n");
  folder.write("twice.txt", "0-3\n4 3-6\n");
  const auto refused = [&](const std::vector<std::string>& more, const std::vector<std::string>& words) {
    expect_refusal(place(folder, "p.yaml", more), wrong_input, words);
    EXPECT_FALSE(std::filesystem::exists(folder / "p.yaml"));
    EXPECT_FALSE(std::filesystem::exists(folder / "p.sqlite"));
  };
  refused({"--nodes", "0-6"}, {"--nodes: 16 ranks need 8 nodes of 2 GPUs, and 7 are free"});
  refused({"--nodes", "0-6,16,20-21"}, {"--nodes: the cluster has no nodes 16, 20, 21, expected 0 to 15"});
  refused({"--nodes", "0-8,3,5-6"}, {"--nodes: nodes 3, 5, 6 stand here more than once"});
  refused({"--nodes", "5-3"}, {"`5-3` ends before it begins, expected 3-5"});
  refused({"--nodes", "1-2-3"}, {"`1-2-3`", "such as 0-3,8,12-15"});
  refused({"--nodes", folder / "nodes.txt"}, {"nodes.txt:3:8: found `x6`"});
  refused({"--nodes", folder / "twice.txt"}, {"twice.txt:2:3: nodes 3, 4 stand here more than once"});
  refused({"--nodes", folder / "none.txt"}, {"none.txt"});
  refused({"--set", "parallelism.dp=3"}, {"global_batch"});
  refused({"--set", "parallelism.dp=16"}, {"makes 64 ranks for 32 GPUs"});
}

TEST(Place, TakesTheNodesOfAListedPlacementForTheFreeOnes) {
  const PlaceFolder folder;
  const CommandResult run =
      place(folder, "p.yaml", {"--set", "parallelism.placement=[0,1,8,9,16,17,24,25,2,3,10,11,18,19,26,27]", "--json", "-"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  const nlohmann::json result = nlohmann::json::parse(run.out);
  EXPECT_EQ(result["nodes"]["free"], 8);
  EXPECT_EQ(result["candidates"][0]["nodes"], (nlohmann::json{0, 4, 8, 12, 1, 5, 9, 13}));
}

/// The sixteen nodes by name: a01 to a08, and b1 to b8.
std::string named_text() {
  std::string text = place_text();
  return text.replace(text.find("  name: four-pods"), 0, "  hosts: ['a[01-08]', 'b[1-8]']\n");
}

TEST(Place, TakesHostsByName) {
  const PlaceFolder folder(named_text());
  // Nodes 0, 1, 4, 5, 8, 9, 10, 11.
  const CommandResult by_number = place(folder, "n.yaml", {"--nodes", "0,1,4,5,8-11", "--json", folder / "n.json"});
  ASSERT_EQ(by_number.exit_code, 0) << by_number.err;
  folder.write("free", "# sinfo\na[01-02]\na05,a06 b[1-4]\n");
  for (const std::string& nodes : {std::string("a[01-02,05-06],b[1-4]"), folder / "free"}) {
    const CommandResult by_name =
        place(folder, "h.yaml", {"--nodes", nodes, "--json", folder / "h.json", "--hostfile", folder / "hosts"});
    ASSERT_EQ(by_name.exit_code, 0) << by_name.err;
    EXPECT_EQ(read_all(folder / "h.yaml"), read_all(folder / "n.yaml"));
    const nlohmann::json result = nlohmann::json::parse(read_all(folder / "h.json"));
    // Two ranks on each, on the hosts of the nodes that the blocks have.
    std::string expected;
    for (const auto& node : result["nodes_of_blocks"])
      expected +=
          (node < 8 ? "a0" + std::to_string(node.get<int>() + 1) : "b" + std::to_string(node.get<int>() - 7)) + " slots=2\n";
    EXPECT_EQ(read_all(folder / "hosts"), expected);
    EXPECT_EQ(result["hosts"].size(), 8U);
    EXPECT_EQ(result["hosts"][0]["ranks"], 2);
    EXPECT_THAT(by_name.out, HasSubstr("hosts in the order of the ranks: "));
  }
}

TEST(Place, TakesNodesOfSeveralHostsAsAWhole) {
  std::string text = named_text();
  text.replace(text.find("  gpus: 32"), 0, "  hosts_per_node: 2\n");
  text.replace(text.find("['a[01-08]'"), 1, "['c[1-16]', ");  // nodes 0 to 7 are c1 and c2, c3 and c4, ..
  const PlaceFolder folder(text);
  const CommandResult run =
      place(folder, "p.yaml", {"--nodes", "c[1-15],a[01-02],b8", "--hostfile", folder / "hosts", "--json", folder / "p.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.err,
              HasSubstr("2 free hosts are passed over, as others of the 2 hosts that NVLink joins are not free: `b8,c15`"));
  const nlohmann::json result = nlohmann::json::parse(read_all(folder / "p.json"));
  EXPECT_EQ(result["nodes"]["free"], 8);
  EXPECT_EQ(result["hosts"].size(), 16U);
  EXPECT_EQ(result["hosts"][0]["ranks"], 1);
}

TEST(Place, RefusesHostsThatAreNotThere) {
  const PlaceFolder named(named_text()), nameless;
  const auto refused = [](const PlaceFolder& folder, const std::vector<std::string>& more) {
    const CommandResult run = place(folder, "p.yaml", more);
    EXPECT_EQ(run.exit_code, wrong_input);
    return run.err;
  };
  EXPECT_THAT(refused(named, {"--nodes", "a[07-09]"}), HasSubstr("the cluster has no host `a09`; did you mean `a0"));
  EXPECT_THAT(refused(named, {"--nodes", "a01,a[01-08]"}), HasSubstr("host `a01` stands here more than once"));
  EXPECT_THAT(refused(named, {"--nodes", "a[03-01]"}),
              HasSubstr("--nodes: the host list `a[03-01]` has the range `03-01`, which goes down"));
  EXPECT_THAT(refused(nameless, {"--nodes", "tux[0-7]"}), HasSubstr("the cluster names no hosts"));
  EXPECT_THAT(refused(nameless, {"--hostfile", nameless / "hosts"}), HasSubstr("needs the names of 16 hosts"));
}

// From the site's own files to a hostfile: Slurm's topology names the hosts that `--nodes` takes.
TEST(Place, TakesTheHostsOfATopologyOfSlurm) {
  const PlaceFolder folder(
      "model: {layers: 4, hidden: 512, heads: 8, kv_heads: 4, ffn: 1024, vocab: 4096}\ncluster: ./cluster.yaml\n"
      "parallelism: {tp: 8, dp: 3}\ntraining: {sequence: 1024, micro_batch: 1, global_batch: 6}\n");
  folder.write("topology.conf", "SwitchName=a Nodes=tux[01-04]\nSwitchName=b Nodes=tux[05-08]\nSwitchName=top Switches=a,b\n");
  const CommandResult imported = run_tandem({"import", folder / "topology.conf", "--from", "slurm-topology", "--out",
                                             folder / "cluster.yaml", "--json", folder / "account.json"});
  ASSERT_EQ(imported.exit_code, 0) << imported.err;
  EXPECT_THAT(imported.err, HasSubstr("tandem: assumed: 8 GPUs per host, as in dgx-h100 (--gpus)"));
  EXPECT_EQ(nlohmann::json::parse(read_all(folder / "account.json"))["assumed"].size(), 5U);
  const CommandResult run = place(folder, "p.yaml", {"--nodes", "tux[03-06]", "--hostfile", folder / "hosts"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::set<std::string> hosts;
  std::istringstream lines(read_all(folder / "hosts"));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(hosts.insert(line).second) << line;
    EXPECT_THAT(line, testing::MatchesRegex("tux0[3-6] slots=8"));
  }
  EXPECT_EQ(hosts.size(), 3U);
}

}  // namespace
}  // namespace tandem::cli::place_test
