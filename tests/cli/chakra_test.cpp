// Chakra's execution traces: what Tandem writes, read byte by byte, and what it reads, written byte by byte.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/traces/chakra_wire.h"

namespace tandem::cli::chakra_test {
namespace {

using namespace tandem::traces;
using nlohmann::json;
using testing::HasSubstr;

class ChakraTest : public testing::Test {
 protected:
  TemporaryFolder folder_;

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  json read_json(const std::string& name) const { return json::parse(read_all(path(name))); }

  /// A model that all dense axes share out, on two nodes.
  std::string scenario(const std::string& training = "") const {
    return write("small.yaml",
                 "name: small\n"
                 "model: {layers: 4, hidden: 1024, heads: 8, kv_heads: 4, ffn: 2048, gated: true, vocab: 8192, norm: rms}\n"
                 "cluster: {preset: dgx-h100, gpus: 16}\n"
                 "parallelism: {tp: 2, sp: true, pp: 2, dp: 4, zero: 1}\n"
                 "training: {sequence: 1024, micro_batch: 1, global_batch: 16, precision: bf16, schedule: 1f1b" +
                     training + "}\n");
  }
  std::map<std::uint32_t, WireTrace> exported(const std::string& file, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"export", file, "--to", "chakra", "--out", path("et")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult run = run_tandem(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    std::map<std::uint32_t, WireTrace> traces;
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      const std::string name = path("et/step." + std::to_string(rank) + ".et");
      if (std::filesystem::exists(name)) traces[rank] = read_wire_trace(read_all(name));
    }
    return traces;
  }
  json simulated(const std::string& file, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"simulate", file, "--json", path("result.json")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult run = run_tandem(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return read_json("result.json");
  }
  CommandResult import(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all{"import"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--from", "chakra", "--out", path("step.dag"), "--json", path("account.json")});
    return run_tandem(all);
  }
  /// Imports and simulates.
  json replayed(const std::vector<std::string>& arguments) const {
    const CommandResult run = import(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return simulated(path("step.dag"));
  }
  void write_ranks(const std::string& name, std::uint32_t ranks, const std::function<std::vector<WireNode>(std::uint32_t)>& nodes,
                   const std::string& version = "0.0.4") const {
    std::filesystem::create_directories(path(name));
    for (std::uint32_t rank = 0; rank < ranks; ++rank)
      write_wire_trace(path(name + "/run." + std::to_string(rank) + ".et"), nodes(rank), version);
  }
};

TEST_F(ChakraTest, WritesNodesByTheSchemasNumbers) {
  const auto traces = exported(scenario());
  ASSERT_EQ(traces.size(), 16U);
  const json groups = read_json("et/comm_group.json");
  std::size_t nodes = 0;
  for (const auto& [rank, trace] : traces) {
    EXPECT_EQ(trace.version, "0.0.4");
    nodes += trace.nodes.size();
    std::set<std::uint64_t> seen;
    for (const WireNode& node : trace.nodes) {
      for (const std::uint64_t before : node.data_deps) EXPECT_TRUE(seen.contains(before)) << "which rules circles out";
      EXPECT_TRUE(seen.insert(node.id).second);
      EXPECT_EQ(node.attributes.at("is_cpu_op").field, 27U);
      if (node.type == wire_compute) {
        EXPECT_EQ(node.attributes.at("num_ops").field, 9U);
        EXPECT_GT(node.number("tensor_size"), 0);
      } else if (node.type == wire_collective) {
        EXPECT_EQ(node.attributes.at("comm_size").field, 9U);
        const std::set<std::int64_t> simulated{wire_all_reduce, wire_all_gather, wire_reduce_scatter};
        EXPECT_TRUE(simulated.contains(node.number("comm_type")));
        const std::string& group = node.attributes.at("pg_name").text;
        EXPECT_EQ(node.attributes.at("pg_name").field, 29U);
        EXPECT_NE(group, "0") << "which ASTRA-sim takes for all ranks";
        EXPECT_THAT(groups.at(group).get<std::vector<std::uint32_t>>(), testing::Contains(rank));
      } else {
        EXPECT_TRUE(node.type == wire_send || node.type == wire_receive) << node.type;
        EXPECT_EQ(node.number(node.type == wire_send ? "comm_src" : "comm_dst"), rank);
      }
    }
  }
  EXPECT_EQ(nodes, simulated(path("small.yaml"), {"--no-fold"})["run"]["tasks"]);
}

TEST_F(ChakraTest, WhatIsSentIsReceivedAndMembersAgree) {
  using Message = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  using Call = std::pair<std::string, std::size_t>;
  std::map<Message, std::int64_t> sent, received;
  std::map<Call, std::set<std::pair<std::int64_t, std::int64_t>>> calls;
  std::map<Call, std::size_t> members;
  for (const auto& [rank, trace] : exported(scenario())) {
    std::map<std::string, std::size_t> next;
    for (const WireNode& node : trace.nodes) {
      if (node.type == wire_send || node.type == wire_receive) {
        auto& messages = node.type == wire_send ? sent : received;
        const Message message{node.number("comm_src"), node.number("comm_dst"), node.number("comm_tag")};
        EXPECT_TRUE(messages.emplace(message, node.number("comm_size")).second) << "two messages of one tag";
      }
      if (node.type != wire_collective) continue;
      const std::string& group = node.attributes.at("pg_name").text;
      const Call call{group, next[group]++};
      calls[call].emplace(node.number("comm_type"), node.number("comm_size"));
      ++members[call];
    }
  }
  EXPECT_GT(sent.size(), 0U);
  EXPECT_EQ(sent, received);
  const json groups = read_json("et/comm_group.json");
  for (const auto& [call, what] : calls) {
    EXPECT_EQ(what.size(), 1U) << "members disagree";
    EXPECT_EQ(members[call], groups.at(call.first).size());
  }
}

// Whole microseconds of kernels that follow one another add up to what they took, each end being off by half of one at most.
TEST_F(ChakraTest, RoundedDurationsAddUp) {
  const auto traces = exported(scenario(), {"--ranks", "0,5"});
  ASSERT_EQ(traces.size(), 2U);
  for (const auto& [rank, trace] : traces) {
    double exact_us = 0, whole_us = 0;
    std::size_t kernels = 0;
    for (const WireNode& node : trace.nodes) {
      if (node.type != wire_compute) continue;
      double nanos = 0;
      std::memcpy(&nanos, &node.attributes.at("duration_nanos").bits, sizeof nanos);
      EXPECT_NEAR(static_cast<double>(node.duration_micros), nanos / 1e3, 1);
      exact_us += nanos / 1e3;
      whole_us += static_cast<double>(node.duration_micros);
      ++kernels;
    }
    EXPECT_GT(kernels, 100U);
    EXPECT_NEAR(whole_us, exact_us, 0.1 * static_cast<double>(kernels)) << "rounding is no bias";
  }
}

// Written and read again on the same cluster, the step takes as long as it did: kernels as long as they took beside
// communication, collectives the same on the same links.
TEST_F(ChakraTest, OwnTracesTakeAsLongAsTheStep) {
  for (const std::string training : {"", ", recompute: full", ", framework: megatron-core"}) {
    const std::string file = scenario(training);
    std::filesystem::remove_all(path("et"));
    EXPECT_EQ(exported(file).size(), 16U);
    const double expected = simulated(file)["step_time_s"];
    const json graph = replayed({path("et"), "--cluster", "dgx-h100"});
    EXPECT_NEAR(graph["step_time_s"].get<double>(), expected, 1e-9 * expected) << training;
    EXPECT_EQ(graph["run"]["ranks"], 16);
    EXPECT_LT(graph["run"]["rank_classes"], 16);
    EXPECT_GT(graph["time_s"]["exposed"]["tp"], 0);
  }
}

TEST_F(ChakraTest, AlikeRanksAreOneClass) {
  constexpr std::uint64_t bytes = 1 << 20;
  for (const std::string version : {"0.0.4", "1.0.2-chakra.0.0.4"}) {
    write_ranks(
        "alike", 8,
        [&](std::uint32_t rank) {
          const std::uint64_t id = 100 * rank;  // numbers that count on from rank to rank, as the text converter's do
          return std::vector{wire_kernel(id, 300), wire_exchange(id + 1, wire_all_reduce, bytes, {id}),
                             wire_kernel(id + 2, 50, {id + 1})};
        },
        version);
    const json graph = replayed({path("alike")});
    EXPECT_EQ(graph["run"]["rank_classes"], 1);
    EXPECT_EQ(graph["run"]["tasks"], 3);
    EXPECT_EQ(graph["gpus"], 8);
    EXPECT_NEAR(graph["time_s"]["compute"].get<double>(), 350e-6, 1e-12);
    const double exposed = graph["time_s"]["exposed"]["none"];
    EXPECT_NEAR(graph["step_time_s"].get<double>(), 350e-6 + exposed, 1e-12);
    // An all-reduce of a megabyte over NVLink: more than its bus bytes at the links' rate, and less than at a tenth of it.
    EXPECT_GT(exposed, 2 * 7.0 / 8 * bytes / 450e9);
    EXPECT_LT(exposed, 2 * 7.0 / 8 * bytes / 45e9);
    std::filesystem::remove_all(path("alike"));
  }
}

// On another cluster kernels are what was recorded, and what is exchanged takes what that cluster's links let it.
TEST_F(ChakraTest, AnotherClusterHasOtherLinks) {
  write_ranks("run", 16, [&](std::uint32_t) {
    return std::vector{wire_kernel(0, 1000), wire_exchange(1, wire_all_gather, 64 << 20, {0})};
  });
  const json h100 = replayed({path("run"), "--cluster", "dgx-h100"}), a100 = replayed({path("run"), "--cluster", "dgx-a100"});
  EXPECT_EQ(h100["time_s"]["compute"], a100["time_s"]["compute"]);
  // NICs of 400 Gbit/s against 200.
  EXPECT_GT(a100["time_s"]["exposed"]["none"].get<double>(), 1.5 * h100["time_s"]["exposed"]["none"].get<double>());
}

TEST_F(ChakraTest, ProcessGroupsComeFromTheFileBesideTheTraces) {
  const auto nodes = [](std::uint32_t rank) {
    return std::vector{wire_exchange(1, wire_all_reduce, 1 << 20, {}, std::to_string(1 + rank / 2))};
  };
  write_ranks("run", 4, nodes);
  expect_refusal(run_tandem({"import", path("run"), "--from", "chakra", "--out", path("x.dag")}), 2,
                 {"run.0.et", "process group '1', which nothing states", "{\"1\": [0, 1]}"});
  write("run/comm_group.json", R"({"1": [0, 1], "2": [2, 3]})");
  write("run/system.json", R"({"scheduling-policy": "LIFO"})");
  EXPECT_EQ(replayed({path("run")})["run"]["rank_classes"], 1);
  EXPECT_THAT(read_json("account.json")["ignored"].dump(), HasSubstr("system.json"));
}

TEST_F(ChakraTest, TransfersMeetByTheirTags) {
  // Rank 1 receives in another order than rank 0 sends in: tags say what meets what.
  const auto traces = [&](std::uint64_t second_tag) {
    write_ranks("run", 2, [&](std::uint32_t rank) {
      const bool receives = rank == 1;
      if (!receives)
        return std::vector{wire_transfer(1, false, 0, 1, 1000, 7), wire_kernel(2, 500, {1}),
                           wire_transfer(3, false, 0, 1, 2000, 8, {2})};
      return std::vector{wire_transfer(1, true, 0, 1, 2000, second_tag), wire_transfer(2, true, 0, 1, 1000, 7),
                         wire_kernel(3, 500, {2})};
    });
  };
  traces(8);
  const double step = replayed({path("run")})["step_time_s"];
  EXPECT_GT(step, 500e-6);
  EXPECT_LT(step, 600e-6) << "both kernels run at once, as the first message was of tag 7";
  traces(9);
  expect_refusal(run_tandem({"import", path("run"), "--from", "chakra", "--out", path("x.dag")}), 2,
                 {"run.1.et", "has tag 9 where node 3 (send) of rank 0 has 8"});
}

TEST_F(ChakraTest, OneTraceStandsForAllWhereAllAreAsked) {
  write_ranks("run", 1, [&](std::uint32_t) {
    return std::vector{wire_kernel(0, 1000), wire_exchange(1, wire_all_reduce, 1 << 20, {0})};
  });
  expect_refusal(run_tandem({"import", path("run"), "--from", "chakra", "--out", path("x.dag")}), 2,
                 {"run.0.et", "does not tell of how many ranks its collectives are", "--gpus"});
  const json graph = replayed({path("run"), "--gpus", "32"});
  EXPECT_EQ(graph["gpus"], 32);
  EXPECT_THAT(read_json("account.json")["assumed"].dump(), HasSubstr("31 of 32 ranks have no trace"));
}

TEST_F(ChakraTest, WhatIsNoneIsRefused) {
  const auto refused = [&](const std::string& name, const std::vector<std::string>& words) {
    std::vector<std::string> all{name};
    all.insert(all.end(), words.begin(), words.end());
    expect_refusal(run_tandem({"import", path(name), "--from", "chakra", "--out", path("x.dag")}), 2, all);
    EXPECT_FALSE(std::filesystem::exists(path("x.dag")));
  };
  write("et.json", R"({"schema": "1.0.1", "nodes": [{"id": 1}]})");
  refused("et.json", {"is JSON, such as PyTorch's execution trace"});
  write("empty.0.et", "");
  refused("empty.0.et", {"is empty"});
  write("text.0.et", "all_reduce 8\n");
  refused("text.0.et", {"does not begin with a message of Chakra's"});
  const std::string whole = wire_trace({wire_kernel(1, 10), wire_kernel(2, 20, {1})});
  write("cut.0.et", whole.substr(0, whole.size() - 3));
  refused("cut.0.et", {"ends within the node from byte"});
  write_wire_trace(path("twice.0.et"), {wire_kernel(1, 10), wire_kernel(1, 20)});
  refused("twice.0.et", {"node 1 (kernel) has the id of an earlier node"});
  write_wire_trace(path("gap.0.et"), {wire_kernel(1, 10, {5})});
  refused("gap.0.et", {"node 1 (kernel) waits for node 5, which is not in the trace"});
  write_wire_trace(path("circle.0.et"), {wire_kernel(1, 10, {2}), wire_kernel(2, 10, {1})});
  refused("circle.0.et", {"waits for others that wait for it"});
  write_wire_trace(path("kind.0.et"), {wire_exchange(1, 12, 8)});
  refused("kind.0.et", {"`comm_type` 12", "0 to 9"});
  std::filesystem::create_directory(path("nothing"));
  refused("nothing", {"holds no trace"});
  expect_refusal(run_tandem({"export", scenario(), "--to", "chakra"}), 2, {"--out", "folder"});
}

TEST_F(ChakraTest, MembersThatDisagreeAreNamed) {
  write_ranks("run", 2, [](std::uint32_t rank) { return std::vector{wire_exchange(4, wire_all_reduce, 100 + rank)}; });
  expect_refusal(run_tandem({"import", path("run"), "--from", "chakra", "--out", path("x.dag")}), 2,
                 {"run.1.et", "node 4 (exchange) meets node 4 (exchange) of rank 0", "of another size"});
  write_ranks("run", 2, [](std::uint32_t rank) {
    return rank == 0 ? std::vector{wire_exchange(4, wire_all_reduce, 8)} : std::vector{wire_kernel(4, 8)};
  });
  expect_refusal(run_tandem({"import", path("run"), "--from", "chakra", "--out", path("x.dag")}), 2,
                 {"run.0.et", "is joined by 1 of the 2 members"});
}

TEST_F(ChakraTest, AGraphIsSimulatedAsItStands) {
  write_ranks("run", 2, [](std::uint32_t) { return std::vector{wire_kernel(1, 100)}; });
  ASSERT_EQ(import({path("run")}).exit_code, 0);
  const CommandResult run = run_tandem({"simulate", path("step.dag"), "--trace", path("step.json")});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("run: 2 x "));
  EXPECT_TRUE(std::filesystem::exists(path("step.json")));
  expect_refusal(run_tandem({"simulate", path("step.dag"), "--set", "parallelism.tp=4"}), 2,
                 {"--set", path("step.dag") + " is a graph"});
  // So is what `lower` writes, in as long as its scenario takes.
  ASSERT_EQ(run_tandem({"lower", scenario(), "--out", path("lowered.dag"), "--folded"}).exit_code, 0);
  EXPECT_NEAR(simulated(path("lowered.dag"))["step_time_s"].get<double>(), simulated(scenario())["step_time_s"].get<double>(),
              1e-12);
}

}  // namespace
}  // namespace tandem::cli::chakra_test
