// Processes on the loopback make the communicators of a DAG and issue its collectives, to a library that records the calls.
#include "runtime/cuda/module/nccl_world.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/dag/dag_builder.h"
#include "tests/runtime/loopback_socket.h"
#include "tests/runtime/processes.h"

namespace tandem::nccl_world_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Ready = Processes::Ready;

ControlOptions patient() {
  return {.join_timeout = 50, .timeout = 50, .silence = 50, .report_interval = 0.02, .handshake = 50, .last_resort = 50};
}

/// Tensor parallelism 2, data parallelism 2; and a pipeline of all four.
Dag four_ranks() {
  DagBuilder builder;
  const auto communicator = [&](const std::string& name, Axis axis, const std::vector<std::uint32_t>& members) {
    return builder.add_communicator({.name = name, .axis = axis, .members = members, .layout = {}});
  };
  const std::vector<CommunicatorId> tp{communicator("tp", Axis::tp, {0, 1}), communicator("tp", Axis::tp, {3, 2})};
  const std::vector<CommunicatorId> dp{communicator("dp", Axis::dp, {0, 2}), communicator("dp", Axis::dp, {1, 3})};
  std::vector<CommunicatorId> forward;
  for (std::uint32_t stage = 0; stage < 3; ++stage) forward.push_back(communicator("forward", Axis::pp, {stage, stage + 1}));
  for (std::uint32_t rank = 0; rank < 4; ++rank) builder.add_rank({.world_rank = rank});
  for (RankIndex rank = 0; rank < 4; ++rank) {
    const auto buffer = [&](DType type, std::int64_t elements) {
      return builder.buffer(rank, BufferKind::activation, type, Shape(elements));
    };
    const BufferId sum = buffer(DType::bf16, 6);
    builder.collective(OpKind::all_reduce, tp[rank / 2], {.name = "tp sum"}, sum, sum);
    const BufferId mean = buffer(DType::f32, 5);
    builder.collective(OpKind::all_reduce, dp[rank % 2], {.name = "dp mean"}, mean, mean, Reduction::mean);
    const BufferId passed = buffer(DType::f16, 9);
    if (rank > 0) builder.collective(OpKind::receive, forward[rank - 1], {.name = "receive"}, no_id, passed);
    if (rank < 3) builder.collective(OpKind::send, forward[rank], {.name = "send"}, passed, no_id);
    builder.barrier(rank, tp[rank / 2], {.name = "barrier"});
  }
  return builder.finish();
}

/// What the library was asked in this process.
std::vector<std::string> calls() {
  void* const library = ::dlopen(TANDEM_FAKE_NCCL, RTLD_NOW);
  auto* const log = reinterpret_cast<const char* (*)()>(::dlsym(library, "fake_nccl_log"));
  std::istringstream text(log());
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

class NcclWorldTest : public testing::Test {
 protected:
  using Work = std::function<std::string(ControlPlane&, NcclWorld&, const Dag&, const Ready&)>;
  std::uint16_t port_ = free_port();
  Processes processes_;

  void SetUp() override { ::setenv("TANDEM_NCCL_LIBRARY", TANDEM_FAKE_NCCL, 1); }
  void TearDown() override {
    ::unsetenv("TANDEM_NCCL_LIBRARY");
    ::unsetenv("FAKE_NCCL");
  }

  void start(std::uint32_t rank, const Work& work, const NcclWorldOptions& options = {}) {
    processes_.start([=, port = port_](const Ready& ready) {
      const Launch launch{.rank = rank,
                          .size = 4,
                          .local_rank = rank,
                          .host = "127.0.0.1",
                          .port = port,
                          .session = "nccl",
                          .secret = "known to this test alone"};
      ControlPlane control(launch, patient());
      const Dag dag = four_ranks();
      float barrier_memory = 0;
      std::string text;
      control.run([&] {
        const std::unique_ptr<NcclWorld> world = make_nccl_world(control, launch, dag, &barrier_memory, options);
        text = work(control, *world, dag, ready);
      });
      return text;
    });
  }
};

void issue_all(NcclWorld& world, const Dag& dag, RankIndex rank) {
  std::vector<char> memory(dag.buffers.size());
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (dag.tasks[id].rank == rank)
      world.issue(
          id, [&](BufferId buffer) { return &memory[buffer]; }, nullptr);
}

TEST_F(NcclWorldTest, MakesTheCommunicatorsAndIssuesTheCalls) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, [rank](ControlPlane&, NcclWorld& world, const Dag& dag, const Ready&) {
      issue_all(world, dag, rank);
      world.close();
      return joined(calls());
    });
  }
  const auto text = [&](std::size_t rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 0);
    return outcome.text;
  };
  // The rounds: tp, dp, forward 0-1 and 2-3, forward 1-2. Of tp's second communicator rank 3 is the first member.
  EXPECT_THAT(text(0), testing::MatchesRegex("init 0 of 4 by rank 0's id \n"
                                             "split tp 0 0 apart \n"
                                             "split dp 0 0 apart \n"
                                             "split forward 0 0 apart \n"
                                             "split forward -1 0 apart \n"
                                             "all-reduce in place 6 bf16 sum on tp\n"
                                             "all-reduce in place 5 f32 avg on dp\n"
                                             "send 0x[0-9a-f]+ 9 f16 to 1 on forward\n"
                                             "all-reduce in place 1 f32 sum on tp\n"
                                             "finalize forward\nfinalize dp\nfinalize tp\nfinalize world\n"
                                             "destroy forward\ndestroy dp\ndestroy tp\ndestroy world\n"));
  EXPECT_THAT(text(2), AllOf(HasSubstr("init 2 of 4 by rank 0's id \n"
                                       "split tp 1 1 apart \n"
                                       "split dp 0 1 apart \n"
                                       "split forward 1 0 apart \n"
                                       "split forward 0 1 apart \n"),
                             testing::ContainsRegex("receive 0x[0-9a-f]+ 9 f16 from 0 on forward\n"
                                                    "send 0x[0-9a-f]+ 9 f16 to 1 on forward\n")));
  EXPECT_THAT(text(3), HasSubstr("split tp 1 0 apart \n"));
}

TEST_F(NcclWorldTest, MemoryIsRegisteredWithTheCommunicatorsOfTheDag) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, [rank](ControlPlane&, NcclWorld& world, const Dag& dag, const Ready&) {
      const std::size_t before = calls().size();
      {
        const std::unique_ptr<NcclMemory> memory = world.allocate(4096);
        std::fill_n(memory->data(), 4096, std::byte{1});
        EXPECT_EQ(world.allocate(0)->data(), nullptr);
        issue_all(world, dag, rank);
      }
      const std::vector<std::string> all = calls();
      world.close();
      return joined({all.begin() + static_cast<std::ptrdiff_t>(before), all.end()});
    });
  }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    const bool two_neighbours = rank == 1 || rank == 2;
    const std::string forward =
        two_neighbours ? "register 4096 with forward\nregister 4096 with forward\n" : "register 4096 with forward\n";
    const std::string backward =
        two_neighbours ? "deregister from forward\nderegister from forward\n" : "deregister from forward\n";
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_THAT(outcome.text,
                testing::StartsWith("allocate 4096\nregister 4096 with tp\nregister 4096 with dp\n" + forward + "all-reduce"));
    EXPECT_THAT(outcome.text, testing::EndsWith(backward + "deregister from dp\nderegister from tp\nfree\n"));
  }
}

TEST_F(NcclWorldTest, ARefusedRegistrationEndsAllAndLeavesNoneBehind) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, [rank](ControlPlane& control, NcclWorld& world, const Dag&, const Ready&) -> std::string {
      if (rank == 2) ::setenv("FAKE_NCCL", "refuse", 1);
      try {
        const std::unique_ptr<NcclMemory> memory = world.allocate(4096);
        control.barrier();
      } catch (...) {
        if (rank == 2) std::fputs(joined(calls()).c_str(), stderr);
        throw;
      }
      return "nothing happened";
    });
  }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 2 on "), HasSubstr("NCCL: the registration of memory with 'dp': ")));
    if (rank != 2) continue;
    EXPECT_THAT(outcome.text, HasSubstr("register 4096 with tp\nregister 4096 with dp\nderegister from tp\nfree\n"));
  }
}

TEST_F(NcclWorldTest, SaysHowMuchMemoryThereIsNot) {
  ::setenv("FAKE_NCCL", "full", 1);
  const Work work = [](ControlPlane&, NcclWorld& world, const Dag&, const Ready&) -> std::string {
    world.allocate(std::size_t{3} << 30);
    return "nothing happened";
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) start(rank, work);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, HasSubstr("NCCL: ncclMemAlloc of 3072 MiB: "));
  }
}

TEST_F(NcclWorldTest, AfterAnAbortMemoryIsOnlyFreed) {
  const Work work = [](ControlPlane& control, NcclWorld& world, const Dag&, const Ready&) -> std::string {
    std::unique_ptr<NcclMemory> memory = world.allocate(4096);
    control.barrier();
    control.fail("the end of the test");
    while (calls().back() != "group end") std::this_thread::yield();
    memory.reset();
    std::fputs(joined(calls()).c_str(), stderr);
    return "nothing happened";
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) start(rank, work);
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("group end\nfree\n"), testing::Not(HasSubstr("deregister"))));
  }
}

TEST_F(NcclWorldTest, AbortsAllCommunicatorsWhenTheRunFails) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, [rank](ControlPlane& control, NcclWorld& world, const Dag& dag, const Ready& ready) -> std::string {
      control.barrier();
      if (rank == 1) {
        ready();
        for (;;) ::pause();
      }
      EXPECT_THROW(control.barrier(), std::runtime_error);
      while (calls().back() != "group end") std::this_thread::yield();
      EXPECT_THROW(issue_all(world, dag, rank), std::runtime_error);
      EXPECT_THROW(world.close(), std::runtime_error);
      std::fputs(joined(calls()).c_str(), stderr);
      return "nothing happened";
    });
  }
  processes_.wait_until_ready(1);
  processes_.send_signal(1, SIGKILL);
  for (const std::size_t rank : {0, 2, 3}) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, HasSubstr("rank 1 on "));
    EXPECT_THAT(outcome.text, HasSubstr(rank == 2 ? "group start\nabort world\nabort tp\nabort dp\nabort forward\nabort forward\n"
                                                    "group end\n"
                                                  : "group start\nabort world\nabort tp\nabort dp\nabort forward\ngroup end\n"));
    EXPECT_THAT(outcome.text, testing::Not(HasSubstr("all-reduce")));
  }
}

TEST_F(NcclWorldTest, ACommunicatorThatIsNotReadyInTimeEndsAll) {
  ::setenv("FAKE_NCCL", "hang", 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, [](ControlPlane&, NcclWorld&, const Dag&, const Ready&) { return std::string("nothing happened"); },
          {.timeout = rank == 2 ? 1.0 : 50.0});
  }
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text,
                AllOf(HasSubstr("rank 2 on "), HasSubstr("NCCL: the communicator of all ranks was not ready within 1 s")));
  }
}

TEST_F(NcclWorldTest, AnErrorThatNcclFindsEndsAll) {
  ::setenv("FAKE_NCCL", "ill", 1);
  const Work work = [](ControlPlane& control, NcclWorld&, const Dag&, const Ready&) -> std::string {
    control.barrier();
    control.barrier();
    return "nothing happened";
  };
  const Work ill = [](ControlPlane& control, NcclWorld& world, const Dag& dag, const Ready&) -> std::string {
    control.barrier();
    // Whether the error shows in the call or later, the watch must find it.
    try {
      issue_all(world, dag, 1);
    } catch (const std::runtime_error&) {
    }
    while (!control.failure()) std::this_thread::yield();
    return "nothing happened";
  };
  for (std::uint32_t rank = 0; rank < 4; ++rank) start(rank, rank == 1 ? ill : work, {.watch_every = 0.02});
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 on "), HasSubstr("remote error (a cable broke)")));
  }
}

TEST(NcclWorldSizes, MustAgree) {
  ControlPlane alone(Launch{});
  const auto sentence = [&](const Dag& dag) -> std::string {
    try {
      make_nccl_world(alone, Launch{}, dag, nullptr);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(sentence(four_ranks()), "the DAG has 4 ranks, but 1 process was started: start one for each rank");
  Dag folded = four_ranks();
  folded.ranks[0].count = 2;
  EXPECT_THAT(sentence(folded), HasSubstr("the DAG is folded"));
}

}  // namespace
}  // namespace tandem::nccl_world_test
