// Tensor-parallel communication beside the GEMMs: the step of the unsharded model, folded or not, with the volumes and the times
// of its closed forms.

#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/analysis/time_parts.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/mutations.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::tp_overlap_test {
namespace {

Scenario overlapped(const std::string& overrides) {
  return tiny_cluster(words("parallelism.sp=true training.overlap.tp=true " + overrides));
}

Scenario not_overlapped(const std::string& overrides) { return tiny_cluster(words("parallelism.sp=true " + overrides)); }

Dag all_ranks(const Scenario& scenario) { return lower(scenario, make_world(scenario, false)); }

class TpOverlap : public testing::TestWithParam<const char*> {};

// As in equivalence_test: rounding alone differs.
TEST_P(TpOverlap, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(overlapped(GetParam())), 1e-5); }

TEST_P(TpOverlap, FoldedTimesAreTheUnfoldedOnes) { EXPECT_GE(expect_equal_when_folded(overlapped(GetParam())), 1U); }

INSTANTIATE_TEST_SUITE_P(
    Dense, TpOverlap,
    testing::Values("parallelism.tp=1", "parallelism.tp=2", "parallelism.tp=4 training.micro_batch=2",
                    "parallelism.tp=8 model.kv_heads=8", "parallelism.tp=8 model.kv_heads=2",
                    "parallelism.tp=2 parallelism.pp=2 parallelism.dp=2",
                    "parallelism.tp=4 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
                    "parallelism.tp=2 parallelism.pp=2 parallelism.dp=2 parallelism.order=[dp,pp,tp,cp,ep]",
                    "parallelism.tp=2 parallelism.cp=2", "parallelism.tp=2 parallelism.cp=2 parallelism.cp_method=ulysses",
                    "parallelism.tp=4 model.hidden=24 model.head_dim=4 model.ffn=44",
                    "parallelism.tp=2 model.hidden=30 model.head_dim=4",  // chunks of 7 and 8 outputs
                    "parallelism.tp=4 model.tied_embeddings=true model.norm=layer model.gated=false parallelism.pp=2"));

INSTANTIATE_TEST_SUITE_P(Precision, TpOverlap,
                         testing::Values("parallelism.tp=4 training.precision=fp8",
                                         "parallelism.tp=2 training.precision=fp8 parallelism.pp=2 training.recompute=full",
                                         "parallelism.tp=2 training.precision=fp8 training.schedule=zb-h1 parallelism.pp=2"));

INSTANTIATE_TEST_SUITE_P(Recompute, TpOverlap,
                         testing::Values("parallelism.tp=4 training.recompute=full",
                                         "parallelism.tp=4 training.recompute=selective",
                                         "parallelism.tp=2 training.recompute=[norm,activation,mlp]"));

INSTANTIATE_TEST_SUITE_P(Zero, TpOverlap,
                         testing::Values("parallelism.tp=2 parallelism.dp=2 parallelism.zero=1",
                                         "parallelism.tp=2 parallelism.dp=2 parallelism.zero=2 training.bucket_MB=0.001",
                                         "parallelism.tp=4 parallelism.dp=2 parallelism.zero=3",
                                         "parallelism.tp=2 parallelism.dp=2 parallelism.zero=3 parallelism.prefetch=0 "
                                         "training.recompute=full"));

INSTANTIATE_TEST_SUITE_P(SplitBackward, TpOverlap,
                         testing::Values("parallelism.tp=4 parallelism.pp=2 training.schedule=zb-h1",
                                         "parallelism.tp=2 parallelism.pp=2 parallelism.vpp=2 training.schedule=zb-v",
                                         "parallelism.tp=2 parallelism.pp=2 training.schedule=dualpipe"));

INSTANTIATE_TEST_SUITE_P(
    Experts, TpOverlap,
    testing::Values("parallelism.tp=2 parallelism.etp=2 parallelism.ep=2 parallelism.dp=2 model.moe.experts=4 model.moe.top_k=2 "
                    "model.moe.ffn=16 model.moe.shared_experts=1",
                    "parallelism.tp=4 parallelism.ep=2 model.moe.experts=4 model.moe.top_k=2 model.moe.ffn=16 "
                    "model.moe.first_dense_layers=2"));

INSTANTIATE_TEST_SUITE_P(
    Latents, TpOverlap,
    testing::Values("parallelism.tp=2 model.kv_heads=8 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 "
                    "model.mla.v_dim=5 model.mla.q_rank=12",
                    "parallelism.tp=4 model.kv_heads=8 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 "
                    "model.mla.v_dim=5 parallelism.cp=2 training.recompute=[mla-up]"));

TEST(TpOverlapFolding, OneClassWhereTheGroupFillsItsNodes) {
  EXPECT_EQ(expect_equal_when_folded(overlapped("parallelism.tp=8 model.kv_heads=8 parallelism.pp=2 parallelism.dp=2")), 2U);
  // Of four ranks on two nodes, two send to their own node and two to the other.
  EXPECT_EQ(expect_equal_when_folded(overlapped("parallelism.tp=4 cluster.gpus_per_node=2 cluster.nics_per_node=2")), 2U);
}

TEST(TpOverlapMutation, AnyDroppedShardOrChunkShows) {
  const Scenario scenario =
      tiny_model(words("parallelism.tp=4 parallelism.sp=true training.overlap.tp=true "
                       "training.global_batch=1"));
  const UnshardedStep unsharded(scenario);
  const Dag dag = lowered(scenario);
  EXPECT_LT(unsharded.difference(dag), 1e-5);
  std::map<std::string, std::vector<GroupId>> by_name;
  for (GroupId g = 0; g < dag.groups.size(); ++g) {
    const TaskId first = dag.members_of(g).front();
    const Task& task = dag.tasks[first];
    if (task.axis == Axis::tp && task.layer >= 0)
      by_name[std::string(operation(task.op).name) + " " + std::string(dag.name_of_task(first))].push_back(g);
  }
  // Shards sent and received for qkv, output, up, down; sums scattered of all four; inputs gathered again of qkv and up.
  EXPECT_EQ(by_name.size(), 2 * 4 + 4 + 2U);
  for (const auto& [name, groups] : by_name) {
    for (const GroupId group : {groups.front(), groups[groups.size() / 2], groups.back()}) {
      EXPECT_FALSE(unsharded.difference(dag, 0, {group}) <= allowed) << name << " dropped once goes unnoticed";
    }
  }
}

constexpr Bytes fp32 = 4;
constexpr std::size_t layers = 4, micro_batches = 8;
constexpr Bytes bsd = 1 * 16 * 32 * fp32;

Volume times(std::size_t count, Bytes bytes) { return {count, static_cast<Bytes>(count) * bytes}; }

TEST(TpOverlapVolumes, RingsBringTheOtherShardsAndChunksAddUp) {
  for (const std::size_t tp : {2, 4}) {
    const Dag dag = all_ranks(overlapped("parallelism.tp=" + std::to_string(tp)));
    for (RankIndex rank = 0; rank < dag.ranks.size(); ++rank) {
      const auto volumes = volumes_of(dag, rank);
      // Forward the input of two column-parallel products, backward the gradient of two row-parallel ones.
      const Volume shards = times(micro_batches * layers * 2 * (tp - 1), bsd / static_cast<Bytes>(tp));
      for (const std::string end : {"send", "receive"}) {
        EXPECT_EQ(volumes.at(end + " tp forward"), shards);
        EXPECT_EQ(volumes.at(end + " tp backward-input"), shards);
      }
      // Two row-parallel outputs in four chunks, and the embedding's.
      EXPECT_EQ(volumes.at("reduce_scatter tp forward"),
                (Volume{micro_batches * (layers * 2 * 4 + 1), static_cast<Bytes>(micro_batches * (layers * 2 + 1)) * bsd}));
      EXPECT_EQ(volumes.at("all_gather tp forward"), times(micro_batches, bsd));  // before the LM head
      // Beside a product without being cut: the column-parallel inputs once more and their gradients, the LM head's among them.
      EXPECT_EQ(volumes.at("reduce_scatter tp backward-input"), times(micro_batches * (layers * 2 + 1), bsd));
      EXPECT_EQ(volumes.at("all_gather tp backward-input"), times(micro_batches * (layers * 2 + 2), bsd));  // and embedding
    }
  }
}

/// FLOPs of the products and bytes of the casts, over all tasks.
std::pair<Flops, Bytes> work_of(const Scenario& scenario) {
  const Dag dag = all_ranks(scenario);
  std::pair<Flops, Bytes> work{0, 0};
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op == OpKind::gemm) work.first += cost_of(dag, id).flops;
    if (dag.tasks[id].op == OpKind::cast) work.second += cost_of(dag, id).bytes;
  }
  return work;
}

TEST(TpOverlapWork, IsThatOfTheWholeProducts) {
  const std::string in_bf16 = "parallelism.tp=2 training.precision=bf16", in_fp8 = "parallelism.tp=4 training.precision=fp8";
  EXPECT_GT(work_of(overlapped(in_bf16)).first, 0);
  EXPECT_EQ(work_of(overlapped(in_bf16)), work_of(not_overlapped(in_bf16)));
  // Of four products a layer, a tensor comes in four parts, each with a scale by rows and by columns.
  auto whole = work_of(not_overlapped(in_fp8));
  whole.second += 4 * micro_batches * layers * 4 * 3 * 2 * size_of(DType::f32);
  EXPECT_EQ(work_of(overlapped(in_fp8)), whole);
}

// Wide enough that products take much longer than to launch; transfers take nothing from them (no channels are known of an
// unknown architecture). One micro-batch of 8192 tokens.
const std::string wide =
    "model.hidden=8192 model.heads=64 model.kv_heads=8 model.head_dim=128 model.ffn=28672 training.sequence=8192 "
    "training.global_batch=1 training.precision=bf16 cluster.nvls=false cluster.gpu.architecture=unknown model.layers=";

struct Simulated {
  Scenario scenario;
  Dag dag;
  Timeline timeline;

  explicit Simulated(const Scenario& s) : scenario(s), dag(lower(s, make_world(s, true))), timeline(simulate(dag).timeline) {}

  /// In the order of their starts: those of layer 0 on rank 0.
  std::vector<TaskId> tasks(OpKind op, const std::string& name, Phase phase = Phase::forward) const {
    std::vector<TaskId> found;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      const Task& task = dag.tasks[id];
      if (task.rank == 0 && task.layer == 0 && task.op == op && task.phase == phase && dag.name_of_task(id) == name)
        found.push_back(id);
    }
    return found;
  }
  /// Of one of several tasks that take equally long.
  Seconds each(const std::vector<TaskId>& tasks) const {
    const Seconds first = timeline.duration(tasks.front());
    for (const TaskId id : tasks) EXPECT_NEAR(timeline.duration(id), first, 1e-9 * first);
    return first;
  }
};

/// Products much shorter than transfers, about as long, and much longer.
constexpr const char* links[] = {"1", "300", "400", "600", "9000"};

TEST(TpOverlapTimes, ARingTakesTheLongestWayThroughShardsAndProducts) {
  for (const std::int64_t tp : {2, 4, 8}) {
    for (const std::string GBps : links) {
      const Simulated step(overlapped(wide + "1 parallelism.tp=" + std::to_string(tp) + " cluster.nvlink_GBps=" + GBps));
      const std::pair<const char*, Phase> rings[] = {{"qkv", Phase::forward},
                                                     {"mlp up", Phase::forward},
                                                     {"attention output", Phase::backward_input},
                                                     {"mlp down", Phase::backward_input}};
      for (const auto& [name, phase] : rings) {
        const std::vector<TaskId> sends = step.tasks(OpKind::send, name, phase), products = step.tasks(OpKind::gemm, name, phase);
        ASSERT_EQ(sends.size(), static_cast<std::size_t>(tp - 1));
        ASSERT_EQ(products.size(), static_cast<std::size_t>(tp));
        const Seconds t = step.each(sends), g = step.each(products);
        Seconds expected = 0;
        for (std::int64_t hops = 0; hops < tp; ++hops)
          expected = std::max(expected, static_cast<double>(hops) * t + static_cast<double>(tp - hops) * g);
        const Seconds taken = step.timeline.end[products.back()] - step.timeline.start[sends.front()];
        EXPECT_NEAR(taken, expected, 1e-9 * expected) << name << ", tp " << tp << ", " << GBps << " GB/s";
        // However short the products: what the port takes for the other shards.
        const ClusterSpec& cluster = step.scenario.cluster;
        const double shard = 2.0 * 8192 * 8192 / static_cast<double>(tp);
        EXPECT_GE(taken, static_cast<double>(tp - 1) * shard / (cluster.nvlink_GBps * 1e9 * cluster.nvlink_efficiency));
      }
    }
  }
}

TEST(TpOverlapTimes, ChunksLeaveOneReduceScatterOrOneProductAlone) {
  for (const std::string GBps : links) {
    const Simulated step(overlapped(wide + "1 parallelism.tp=4 cluster.nvlink_GBps=" + GBps));
    for (const char* name : {"attention output", "mlp down"}) {
      const std::vector<TaskId> products = step.tasks(OpKind::gemm, name), scatters = step.tasks(OpKind::reduce_scatter, name);
      ASSERT_EQ(products.size(), 4U);
      ASSERT_EQ(scatters.size(), 4U);
      const Seconds g = step.each(products), r = step.each(scatters);
      const Seconds taken = step.timeline.end[scatters.back()] - step.timeline.start[products.front()];
      EXPECT_NEAR(taken, std::max(4 * g + r, g + 4 * r), 1e-9 * taken) << name << ", " << GBps << " GB/s";
    }
  }
}

Seconds exposed(const Simulated& step) {
  const TimeParts parts = mean_over_ranks(step.dag, time_parts(step.dag, step.timeline));
  return parts.exposed[static_cast<std::size_t>(Axis::tp)];
}

TEST(TpOverlapTimes, AsLongAsProductsAreLongerALayerWaitsForTwoChunks) {
  const std::string mesh = " parallelism.tp=4 cluster.nvlink_GBps=600";
  const Simulated one(overlapped(wide + "1" + mesh)), two(overlapped(wide + "2" + mesh));
  const Seconds chunks =
      one.each(one.tasks(OpKind::reduce_scatter, "attention output")) + one.each(one.tasks(OpKind::reduce_scatter, "mlp down"));
  EXPECT_NEAR(exposed(two) - exposed(one), chunks, 1e-6 * chunks);
  // Without overlap for all that products need first or give last.
  const Simulated before(not_overlapped(wide + "1" + mesh)), after(not_overlapped(wide + "2" + mesh));
  Seconds waits = 0;
  for (const char* name : {"qkv", "mlp up"}) waits += before.each(before.tasks(OpKind::all_gather, name));
  for (const char* name : {"attention output", "mlp down"})
    waits += before.each(before.tasks(OpKind::reduce_scatter, name)) +
             before.each(before.tasks(OpKind::all_gather, name, Phase::backward_input));
  EXPECT_NEAR(exposed(after) - exposed(before), waits, 1e-6 * waits);
}

// Where the gradient of an input is summed after that of the weight, every layer waits for both of its sums, and without for
// none, as long as products are longer than they: forward and backward the same bytes.
TEST(TpSumTimes, AfterTheWeightsGradientsLieOpen) {
  const std::string mesh = " parallelism.tp=4 parallelism.sp=false cluster.nvlink_GBps=1200";
  const auto of_a_layer = [&](const std::string& framework) {
    const Simulated one(tiny_cluster(words(wide + "1" + mesh + framework))),
        two(tiny_cluster(words(wide + "2" + mesh + framework)));
    return exposed(two) - exposed(one);
  };
  const Simulated step(tiny_cluster(words(wide + "1" + mesh)));
  Seconds forward = 0, backward = 0;
  for (const char* name : {"attention output", "mlp down"}) forward += step.each(step.tasks(OpKind::all_reduce, name));
  for (const char* name : {"qkv", "mlp up"}) backward += step.each(step.tasks(OpKind::all_reduce, name, Phase::backward_input));
  EXPECT_NEAR(of_a_layer(""), forward, 1e-6 * forward);
  EXPECT_NEAR(of_a_layer(" training.framework.sums_after_weights=true"), forward + backward, 1e-6 * forward);
}

// The step is the same, whatever is put off, recomputed or interleaved.
class TpSums : public testing::TestWithParam<const char*> {};

TEST_P(TpSums, ShardedStepIsTheUnshardedStep) {
  EXPECT_LT(largest_difference(tiny_cluster(words(std::string("training.framework.sums_after_weights=true ") + GetParam()))),
            1e-5);
}

INSTANTIATE_TEST_SUITE_P(Meshes, TpSums,
                         testing::Values("parallelism.tp=2", "parallelism.tp=2 training.schedule=zb-h1 parallelism.pp=2",
                                         "parallelism.tp=2 parallelism.sp=true training.recompute=full"));

}  // namespace
}  // namespace tandem::studies::tp_overlap_test
