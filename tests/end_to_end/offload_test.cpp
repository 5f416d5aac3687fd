// What is kept in the memory of the host: the step computes the same, folding keeps its times, and memory, traffic and times
// follow the closed forms.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "runtime/analysis/memory.h"
#include "runtime/analysis/time_parts.h"
#include "runtime/base/input_error.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/bounds.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::offload_test {
namespace {

std::vector<std::string> with_host(const std::string& overrides) {
  std::vector<std::string> all = words(overrides);
  all.emplace_back("cluster.host={link_GBps: 50, link_latency_us: 8, memory_GBps: 400}");
  return all;
}

Dag lowered(const std::string& overrides, bool folded = true) {
  const Scenario scenario = tiny_cluster(with_host(overrides));
  return lower(scenario, make_world(scenario, folded));
}

class Offloaded : public testing::TestWithParam<const char*> {};

TEST_P(Offloaded, ComputesTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_cluster(with_host(GetParam()))), 1e-5); }

TEST_P(Offloaded, FoldsToTheSameTimes) { EXPECT_GE(expect_equal_when_folded(tiny_cluster(with_host(GetParam()))), 1U); }

INSTANTIATE_TEST_SUITE_P(
    Meshes, Offloaded,
    testing::Values("training.offload.optimizer=1", "training.offload.optimizer=0.5 parallelism.dp=4 parallelism.zero=0",
                    "training.offload.optimizer=0.3 parallelism.dp=8 parallelism.zero=1 training.offload.overlap_optimizer=true "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4 training.bucket_MB=0.01",
                    "training.offload.optimizer=1 parallelism.dp=4 parallelism.zero=2 training.offload.overlap_optimizer=true "
                    "training.overlap.dp=false",
                    "training.offload.optimizer=0.7 parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2 parallelism.tp=2 "
                    "parallelism.sp=true training.offload.overlap_optimizer=true",
                    "training.offload.optimizer=1 parallelism.dp=2 parallelism.pp=2 model.tied_embeddings=true "
                    "training.offload.overlap_optimizer=true",
                    "training.offload.optimizer=0.5 parallelism.dp=4 parallelism.ep=2 model.moe.experts=8 model.moe.top_k=2 "
                    "model.moe.ffn=24 training.grad_compression=2",
                    "training.offload.optimizer=0.5 parallelism.pp=2 parallelism.dp=2 training.schedule=dualpipe "
                    "training.global_batch=8"));

INSTANTIATE_TEST_SUITE_P(
    Activations, Offloaded,
    testing::Values(
        "training.offload.activations=4", "training.offload.activations=2 parallelism.dp=2 parallelism.tp=2",
        "training.offload.activations=3 parallelism.dp=2 parallelism.tp=2 parallelism.sp=true training.recompute=selective",
        "training.offload.activations=4 training.recompute=full parallelism.dp=2",
        "training.offload.activations=1 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
        "parallelism.dp=2 model.mtp_depth=1",
        "training.offload.activations=2 parallelism.pp=2 training.schedule=gpipe model.tied_embeddings=true",
        "training.offload.activations=4 parallelism.dp=4 parallelism.zero=3 training.offload.optimizer=0.5 "
        "training.offload.overlap_optimizer=true",
        "training.offload.activations=2 parallelism.cp=2 parallelism.dp=2",
        "training.offload.activations=4 parallelism.cp=2 parallelism.cp_method=ulysses model.norm=layer",
        "training.offload.activations=2 parallelism.zero=0 parallelism.dp=2 training.sync_every=2",
        "training.offload.activations=4 parallelism.dp=4 parallelism.ep=2 model.moe.experts=8 model.moe.top_k=2 "
        "model.moe.ffn=24 training.precision=fp8"));

TEST(OffloadedStates, AreNotAveragedUnderLocalSgd) {
  EXPECT_THROW(
      tiny_cluster(with_host("training.offload.optimizer=0.5 training.sync_every=2 parallelism.zero=0 parallelism.dp=2")),
      InputError);
}

// Sizes of the tiny model, as in data_parallel_test.cpp.
constexpr std::int64_t table = 96 * 32, layer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32;
constexpr std::int64_t parameters = 2 * table + 4 * layer + 32;

MemoryUse memory_of(const std::string& overrides) {
  const Dag dag = lowered(overrides);
  return memory_use(dag, simulate(dag).timeline)[0];
}

// Of each parameter the GPU keeps 2 bytes of weight and 4 of gradient, and its share of 12 bytes of states; the host has the rest
// of these, and room for a gradient and a weight of each.
TEST(OffloadedMemory, FollowsTheClosedForms) {
  for (const double share : {0.0, 0.25, 0.5, 1.0}) {
    for (const int d : {1, 2, 4}) {
      const MemoryUse use = memory_of("training.precision=bf16 parallelism.zero=1 parallelism.dp=" + std::to_string(d) +
                                      " training.offload.optimizer=" + std::to_string(share));
      const double owned = static_cast<double>(parameters) / d;
      EXPECT_EQ(use.parameters + use.gradients, 6 * parameters);
      EXPECT_DOUBLE_EQ(static_cast<double>(use.optimizer), 12 * (1 - share) * owned);
      const double norm = share > 0 ? 4 : 0;
      EXPECT_DOUBLE_EQ(static_cast<double>(use.host), (12 + 4 + 2) * share * owned + norm);
    }
  }
}

struct Moved {
  Bytes out = 0, in = 0;
};

Moved moved(const Dag& dag) {
  Moved sum;
  for (const Task& task : dag.tasks) {
    if (task.op != OpKind::copy || task.rank != 0) continue;
    (task.stream == Stream::to_host ? sum.out : sum.in) += dag.groups[task.group].bytes;
  }
  return sum;
}

TEST(OffloadedVolume, IsAGradientOutAndAWeightBack) {
  for (const std::string overlap : {"true", "false"}) {
    const Moved sum =
        moved(lowered("training.precision=bf16 parallelism.dp=4 parallelism.zero=1 training.offload.optimizer=0.5 "
                      "training.offload.overlap_optimizer=" +
                      overlap));
    EXPECT_EQ(sum.out, 4 * parameters / 4 / 2 + 4);  // and the norm
    EXPECT_EQ(sum.in, 2 * parameters / 4 / 2);
  }
}

/// When the named tasks of rank 0 run, all together.
struct Span {
  Seconds begin = 1e9, end = 0, busy = 0;
};
Span span_of(const Dag& dag, const Timeline& timeline, const std::string& name) {
  Span span;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].rank != 0 || dag.name_of_task(id) != name) continue;
    span.begin = std::min(span.begin, timeline.start[id]);
    span.end = std::max(span.end, timeline.end[id]);
    span.busy += timeline.duration(id);
  }
  return span;
}

// One after the other: 4 bytes of each parameter at 50 GB/s, and the norm; 4 (gradient) + 4 (weight) + 2 * 12 bytes, and once in
// a bucket the norm, at an eighth of 400 GB/s; 4 bytes back; each copy after 8 us.
TEST(OffloadedTimes, AreThoseOfLinkAndHostMemory) {
  const Dag dag = lowered("training.offload.optimizer=1 training.bucket_MB=0.02");
  const Timeline timeline = simulate(dag).timeline;
  const Span norm = span_of(dag, timeline, "gradient norm"), adam = span_of(dag, timeline, "adam on the host");
  const Span back = span_of(dag, timeline, "weights from host");
  double buckets = 0;
  for (const Task& task : dag.tasks) buckets += task.op == OpKind::adam ? 1 : 0;
  ASSERT_GT(buckets, 3);
  const Seconds out = (buckets + 1) * 8e-6 + (4.0 * parameters + 4) / 50e9, in = buckets * 8e-6 + 4.0 * parameters / 50e9;
  const Seconds update = (32.0 * parameters + 4 * buckets) / (400e9 / 8);
  EXPECT_NEAR(adam.busy, update, 1e-9 * update);
  EXPECT_NEAR(back.end - norm.end, out + update + in, 1e-9 * (out + update + in));
  EXPECT_EQ(back.end, timeline.makespan());
  const TimeParts parts = mean_over_ranks(dag, time_parts(dag, timeline));
  EXPECT_NEAR(parts.exposed_on(Axis::host), out + update + in, 1e-9 * (out + update + in));
  EXPECT_NEAR(parts.total(), timeline.makespan(), 1e-9 * timeline.makespan());
  EXPECT_LE(sim::lower_bound(dag), timeline.makespan());
  EXPECT_GE(sim::upper_bound(dag, timeline), timeline.makespan() * (1 - 1e-9));
}

// Gradients leave beside the backward, and weights come back while the CPU updates the next bucket: after the norm is known, all
// that is left is its copy, the update, and the last bucket's way back, or the copies of all.
TEST(OffloadedTimes, OverlapHidesTheCopies) {
  const std::string some = "training.offload.optimizer=1 training.bucket_MB=0.02 training.offload.overlap_optimizer=";
  const Dag apart = lowered(some + "false"), beside = lowered(some + "true");
  const Timeline one = simulate(apart).timeline, other = simulate(beside).timeline;
  EXPECT_LT(span_of(beside, other, "gradients to host").begin, span_of(beside, other, "gradient norm").begin);
  EXPECT_GE(span_of(apart, one, "gradients to host").begin, span_of(apart, one, "gradient norm").end);
  EXPECT_LT(span_of(beside, other, "weights from host").begin, span_of(beside, other, "adam on the host").end);
  EXPECT_GE(span_of(apart, one, "weights from host").begin, span_of(apart, one, "adam on the host").end);
  EXPECT_LT(other.makespan(), one.makespan());
}

// What a NIC sends and what is copied to the host share the GPU's link: while both run, each has half of it.
TEST(OffloadedTimes, NicsShareTheLink) {
  const std::string mesh =
      "parallelism.dp=2 parallelism.zero=0 cluster.gpus_per_node=1 cluster.nics_per_node=1 training.offload.optimizer=1 ";
  const Scenario scenario = tiny_cluster(with_host(mesh));
  const World world = make_world(scenario, false);
  std::map<LinkId, int> users;
  for (const Communicator& communicator : world.communicators) {
    if (communicator.name != "dp" && communicator.name != "to host") continue;
    for (const Crossing& crossing : communicator.layout.paths.front().crossings)
      if (world.links[crossing.link].tier == Tier::pcie && crossing.multiplicity > 0) ++users[crossing.link];
  }
  int shared = 0;
  for (const auto& [link, count] : users) {
    if (count != 2) continue;
    ++shared;
    EXPECT_EQ(world.links[link].capacity, 50e9);
  }
  EXPECT_EQ(shared, 2);  // out of either GPU
}

// With whole layers recomputed the input of each is all that waits: sequence x hidden numbers of 4 bytes, out and back.
TEST(OffloadedActivations, OfRecomputedLayersAreTheirInputs) {
  const Dag dag = lowered("training.recompute=full training.global_batch=2 training.offload.activations=3");
  const Moved sum = moved(dag);
  const Bytes input = 16 * 32 * 4;
  EXPECT_EQ(sum.out, 2 * 3 * input);
  EXPECT_EQ(sum.in, sum.out);
  // Two layers at a time at most, of which one goes back: the host's buffers are used again by the next micro-batch.
  EXPECT_EQ(memory_use(dag, simulate(dag).timeline)[0].host, 3 * input);
}

// Every byte that leaves comes back, once in a micro-batch; what is offloaded is not held.
TEST(OffloadedActivations, LeaveRoom) {
  const std::string model =
      "training.sequence=512 model.layers=8 training.global_batch=2 parallelism.dp=1 training.offload.activations=";
  const MemoryUse none = memory_of(model + "0"), all = memory_of(model + "8");
  EXPECT_LT(all.activations, none.activations / 2);
  EXPECT_EQ(all.parameters + all.gradients + all.optimizer, none.parameters + none.gradients + none.optimizer);
  // Nothing but the first layers' share, which grows with their number.
  Bytes before = 0;
  for (const int layers : {1, 2, 4, 8}) {
    const Moved sum = moved(lowered(model + std::to_string(layers)));
    EXPECT_EQ(sum.in, sum.out);
    EXPECT_EQ(sum.out, before > 0 ? 2 * before : sum.out);
    before = sum.out;
  }
}

}  // namespace
}  // namespace tandem::studies::offload_test
