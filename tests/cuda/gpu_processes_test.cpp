// Whole steps of several processes, a rank each, by the GPU's backend: kernels and streams emulated, collectives through memory
// that the processes share, the control plane on the loopback. Against the host backend.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <string>
#include <thread>

#include "runtime/analysis/distinct_collectives.h"
#include "runtime/contents/initial_values.h"
#include "runtime/cuda/emulation/process_exchange.h"
#include "runtime/cuda/emulation/streams.h"
#include "runtime/cuda/module/gpu_step.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "runtime/launch/control_plane.h"
#include "studies/step/verification.h"
#include "tests/cuda/step_support.h"
#include "tests/runtime/all_collectives.h"
#include "tests/runtime/loopback_socket.h"
#include "tests/runtime/processes.h"

namespace tandem::studies::gpu_processes_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int multiprocessors = 4;

ControlOptions patient() {
  return {.join_timeout = 50, .timeout = 50, .silence = 50, .report_interval = 0.02, .handshake = 50, .last_resort = 50};
}

/// A process for each rank of a DAG.
class ProcessPerRank {
 public:
  using Work = std::function<void(GpuStep&, ControlPlane&, RankIndex)>;

  explicit ProcessPerRank(const Dag& dag, ControlOptions options = patient()) : dag_(dag), options_(options), exchange_(dag) {}

  void start(GraphScope graphs, const Work& work) {
    for (RankIndex rank = 0; rank < dag_.ranks.size(); ++rank) {
      processes_.start([&, rank](const Processes::Ready&) {
        emulation::seed_streams(2 * rank + (graphs == GraphScope::full ? 1 : 0));
        const auto size = static_cast<std::uint32_t>(dag_.ranks.size());
        const Launch launch{.rank = rank,
                            .size = size,
                            .local_rank = rank,
                            .host = "127.0.0.1",
                            .port = port_,
                            .session = "a test",
                            .secret = "known to this test alone"};
        ControlPlane control(launch, options_);
        control.run([&] {
          const auto step = make_gpu_step(dag_, {.control = &control, .launch = &launch, .graphs = graphs}, multiprocessors);
          work(*step, control, rank);
          step->close();
        });
        return std::string();
      });
    }
  }

  emulation::ProcessExchange& exchange() { return exchange_; }
  Processes::Outcome outcome(RankIndex rank) { return processes_.outcome(rank); }

 private:
  const Dag& dag_;
  ControlOptions options_;
  std::uint16_t port_ = free_port();
  emulation::ProcessExchange exchange_;
  Processes processes_;
};

class GpuProcesses : public testing::TestWithParam<TinyStep> {};

TEST_P(GpuProcesses, LeaveWhatTheHostLeaves) {
  const Dag dag = dag_of(GetParam());
  HostMemory host(dag, data_seed);
  execute(dag, *make_host_backend(host));
  const VerificationTolerance tolerance = verification_tolerance(GetParam().precision);
  for (const GraphScope graphs : {GraphScope::none, GraphScope::layer, GraphScope::full}) {
    ProcessPerRank processes(dag);
    processes.start(graphs, [&](GpuStep& step, ControlPlane& control, RankIndex rank) {
      EXPECT_EQ(step.verify_collectives(), distinct_collectives(dag).size());
      const int times = graphs == GraphScope::full ? 2 : 1;  // a graph is launched again, and captured anew where dates begin
      for (const bool dates : {false, true}) {
        step.date_tasks(dates);
        for (int run = 0; run < times; ++run) {
          step.fill(data_seed);
          control.barrier();
          const Timeline timeline = execute(dag, step);
          if (dates) expect_in_order(dag, timeline, rank);
        }
      }
      EXPECT_LT(difference(dag, step, host, rank, BufferKind::gradient), tolerance.gradients);
      EXPECT_LT(difference(dag, step, host, rank, BufferKind::parameter), tolerance.rest);
    });
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const Processes::Outcome outcome = processes.outcome(rank);
      EXPECT_EQ(outcome.exit_code, 0) << "rank " << rank << ", graphs: " << name_of(graphs);
      EXPECT_EQ(outcome.text, "") << "rank " << rank << ", graphs: " << name_of(graphs);
    }
  }
}

constexpr const char* experts = R"(model.layers=2 model.moe={"experts":8,"top_k":2,"ffn":64} )"
                                "parallelism.dp=4 parallelism.ep=4 parallelism.zero=0 training.global_batch=4";

INSTANTIATE_TEST_SUITE_P(
    Meshes, GpuProcesses,
    testing::Values(
        TinyStep{"model.layers=2 parallelism.dp=2 training.global_batch=2"},
        TinyStep{"model.layers=2 parallelism.tp=2 parallelism.sp=true training.global_batch=2"},
        TinyStep{"model.layers=2 parallelism.dp=3 parallelism.zero=3 training.global_batch=3"},
        TinyStep{"parallelism.pp=2 parallelism.dp=2 parallelism.zero=1 training.global_batch=4"},
        TinyStep{"parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b training.global_batch=4"},
        TinyStep{"parallelism.pp=4 training.schedule=zb-h1 training.global_batch=4", DType::bf16},
        TinyStep{"model.layers=2 parallelism.cp=2 training.global_batch=2"},
        TinyStep{"model.layers=2 parallelism.cp=2 parallelism.cp_method=ulysses training.global_batch=2", DType::bf16},
        TinyStep{experts}, TinyStep{experts, DType::bf16},
        TinyStep{
            "model.layers=2 parallelism.tp=2 parallelism.sp=true parallelism.dp=2 parallelism.zero=2 training.global_batch=2",
            DType::bf16},
        TinyStep{"model.layers=2 parallelism.tp=2 parallelism.sp=true training.overlap.tp=true parallelism.cp=2 "
                 "training.global_batch=2",
                 DType::f16},
        TinyStep{"parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1 "
                 "training.global_batch=4"}));

class StuckProcessOfAStep : public testing::TestWithParam<GraphScope> {};
INSTANTIATE_TEST_SUITE_P(Graphs, StuckProcessOfAStep, testing::Values(GraphScope::none, GraphScope::layer, GraphScope::full),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// In the second run, too: what the first run recorded says nothing of it.
TEST_P(StuckProcessOfAStep, IsNamed) {
  const Dag dag = dag_of({"model.layers=1 parallelism.dp=3 training.global_batch=3"});
  ControlOptions options = patient();
  options.timeout = 5;
  options.last_resort = 1;
  ProcessPerRank processes(dag, options);
  processes.start(GetParam(), [&](GpuStep& step, ControlPlane& control, RankIndex rank) {
    step.fill(data_seed);
    control.barrier();
    execute(dag, step);
    control.barrier();
    while (rank == 1) ::pause();
    execute(dag, step);
  });
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    const Processes::Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1) << "rank " << rank;
    if (rank == 1) continue;  // ended by force
    EXPECT_THAT(outcome.text, AllOf(HasSubstr("rank 1 on "), HasSubstr("has made no progress for 5 s")));
  }
}

// Rank 1 comes first, so that it reports to wait; it waits no more when it is stuck.
TEST(StuckProcess, IsNamedThoughItHadWaited) {
  const Dag dag = all_collectives(3);
  ControlOptions options = patient();
  options.timeout = 5;
  options.last_resort = 1;
  ProcessPerRank processes(dag, options);
  processes.start(GraphScope::none, [&](GpuStep& step, ControlPlane& control, RankIndex rank) {
    step.fill(data_seed);
    control.barrier();
    if (rank != 1) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    execute(dag, step);
    while (rank == 1) ::pause();
    execute(dag, step);
  });
  for (const RankIndex rank : {0U, 2U})
    EXPECT_THAT(processes.outcome(rank).text, AllOf(HasSubstr("rank 1 on "), HasSubstr("has made no progress for 5 s")));
}

class CollectivesBetweenProcesses : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, CollectivesBetweenProcesses, testing::Values(DType::f32, DType::bf16, DType::f16, DType::i32));

TEST_P(CollectivesBetweenProcesses, AreExactOnCraftedContents) {
  for (const std::uint32_t size : {2, 3}) {
    const Dag dag = all_collectives(size, GetParam());
    ProcessPerRank processes(dag);
    processes.start(GraphScope::none, [](GpuStep& step, ControlPlane&, RankIndex) { EXPECT_EQ(step.verify_collectives(), 13U); });
    for (RankIndex rank = 0; rank < size; ++rank) {
      const Processes::Outcome outcome = processes.outcome(rank);
      EXPECT_EQ(outcome.exit_code, 0);
      EXPECT_EQ(outcome.text, "");
    }
  }
}

struct BrokenWorld {
  emulation::ProcessExchange::Fault fault;
  TinyStep step;
  const char* found;  ///< by what the sentence begins with
};
void PrintTo(const BrokenWorld& broken, std::ostream* out) { PrintTo(broken.step, out); }

class CollectivesOf : public testing::TestWithParam<BrokenWorld> {};

TEST_P(CollectivesOf, ABrokenWorldEndAllWithTheSentence) {
  const Dag dag = dag_of(GetParam().step);
  ProcessPerRank processes(dag);
  processes.exchange().break_by(GetParam().fault);
  processes.start(GraphScope::none, [](GpuStep& step, ControlPlane&, RankIndex) { step.verify_collectives(); });
  std::set<std::string> sentences;
  for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
    const Processes::Outcome outcome = processes.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 1);
    sentences.insert(outcome.text);
  }
  EXPECT_EQ(sentences.size(), 1U) << "all end with the same";
  EXPECT_THAT(*sentences.begin(), testing::ContainsRegex(std::string("rank [0-9]+ on .*: ") + GetParam().found +
                                                         "': element [0-9]+ of rank [0-9]+ is [-0-9.]+ instead of [0-9.]+"));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, CollectivesOf,
    testing::Values(
        BrokenWorld{emulation::ProcessExchange::Fault::swapped,
                    {"model.layers=1 parallelism.tp=2 parallelism.sp=true training.global_batch=1"},
                    "all_gather '.*' on communicator 'tp"},
        BrokenWorld{emulation::ProcessExchange::Fault::missing,
                    {"model.layers=1 parallelism.dp=3 parallelism.zero=0 training.global_batch=3", DType::bf16},
                    "all_reduce '.*' on communicator 'dp"},
        BrokenWorld{emulation::ProcessExchange::Fault::swapped, {experts, DType::bf16}, "all_to_all '.*' on communicator 'ep"}));

}  // namespace
}  // namespace tandem::studies::gpu_processes_test
