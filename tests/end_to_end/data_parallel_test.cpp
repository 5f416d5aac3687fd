// Data parallelism in all its forms: the sharded step is the unsharded one, folding keeps its times, and what a rank keeps and
// moves follows the closed forms.

#include <gtest/gtest.h>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"
#include "tests/end_to_end/volumes.h"

namespace tandem::studies::data_parallel_test {
namespace {

class DataParallel : public testing::TestWithParam<const char*> {};

TEST_P(DataParallel, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(tiny_cluster(words(GetParam()))), 1e-5); }

TEST_P(DataParallel, FoldedTimesAreTheUnfoldedOnes) {
  std::vector<std::string> overrides = words(GetParam());
  overrides.emplace_back("cluster.fabric.oversubscription=[1,2,4]");
  EXPECT_GE(expect_equal_when_folded(tiny_cluster(overrides)), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    Zero3, DataParallel,
    testing::Values(
        "parallelism.dp=2 parallelism.zero=3", "parallelism.dp=1 parallelism.zero=3",
        "parallelism.dp=8 parallelism.zero=3 parallelism.prefetch=0",
        "parallelism.dp=4 parallelism.zero=3 parallelism.prefetch=3",
        "parallelism.dp=2 parallelism.zero=3 training.overlap.dp=false",
        "parallelism.dp=2 parallelism.zero=3 training.overlap.dp=false parallelism.gather_unit=weight",
        "parallelism.dp=2 parallelism.zero=3 parallelism.gather_unit=weight parallelism.tp=2 model.hidden=512 model.ffn=256",
        "parallelism.dp=2 parallelism.zero=3 parallelism.reshard_after_forward=false training.recompute=full",
        "parallelism.dp=2 parallelism.zero=3 parallelism.gather_per_micro_batch=false training.recompute=selective",
        "parallelism.dp=3 parallelism.zero=3 training.global_batch=6 model.norm=layer model.gated=false",  // padded slices
        "parallelism.dp=2 parallelism.zero=3 parallelism.tp=2",
        "parallelism.dp=4 parallelism.zero=3 parallelism.tp=2 parallelism.sp=true",
        "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2",
        "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 parallelism.reshard_after_forward=true",
        "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 parallelism.gather_per_micro_batch=true",
        "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 training.schedule=gpipe training.overlap.dp=false",
        "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
        "parallelism.reshard_after_forward=true parallelism.tp=2 parallelism.sp=true",
        "parallelism.dp=2 parallelism.zero=3 model.tied_embeddings=true parallelism.tp=2 parallelism.sp=true",
        "parallelism.dp=2 parallelism.zero=3 model.tied_embeddings=true parallelism.pp=2 model.rotary=false "
        "model.max_positions=16",
        "parallelism.dp=4 parallelism.zero=3 model.tied_embeddings=true parallelism.pp=2 parallelism.vpp=2 "
        "training.schedule=interleaved-1f1b parallelism.order=[dp,pp,tp,cp,ep]"));

INSTANTIATE_TEST_SUITE_P(SplitBackward, DataParallel,
                         testing::Values("parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 training.schedule=zb-h1",
                                         "parallelism.dp=2 parallelism.zero=3 parallelism.pp=2 training.schedule=zb-h1 "
                                         "parallelism.reshard_after_forward=true training.overlap.dp=false"));

// Context-parallel ranks share weights as well: the group is cp x dp.
INSTANTIATE_TEST_SUITE_P(
    AcrossContext, DataParallel,
    testing::Values("parallelism.cp=2 parallelism.dp=2 parallelism.zero=3",
                    "parallelism.cp=2 parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=4",
                    "parallelism.cp=2 parallelism.dp=2 parallelism.zero=3 parallelism.hsdp=2 parallelism.order=[dp,tp,cp,pp,ep] "
                    "cluster.gpus_per_node=2 cluster.nics_per_node=2",
                    "parallelism.cp=4 parallelism.dp=2 parallelism.zero=1 parallelism.hsdp=2 parallelism.order=[tp,dp,cp,pp,ep]",
                    "parallelism.cp=2 parallelism.dp=4 parallelism.zero=2 training.hierarchical_all_reduce=true "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4"));

INSTANTIATE_TEST_SUITE_P(
    Hsdp, DataParallel,
    testing::Values("parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2",
                    "parallelism.dp=8 parallelism.zero=3 parallelism.hsdp=4",
                    "parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=4",
                    "parallelism.dp=4 parallelism.zero=1 parallelism.hsdp=2",
                    "parallelism.dp=4 parallelism.zero=2 parallelism.hsdp=2 training.overlap.dp=false",
                    "parallelism.dp=8 parallelism.zero=3 parallelism.hsdp=2 parallelism.tp=2 parallelism.sp=true "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4",
                    "parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2 parallelism.pp=2 parallelism.vpp=2 "
                    "training.schedule=interleaved-1f1b model.tied_embeddings=true parallelism.order=[dp,pp,tp,cp,ep] "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4",
                    "parallelism.dp=6 parallelism.zero=3 parallelism.hsdp=3 training.global_batch=12 model.norm=layer"));

INSTANTIATE_TEST_SUITE_P(
    Hierarchical, DataParallel,
    testing::Values("training.hierarchical_all_reduce=true parallelism.dp=4 parallelism.zero=0 cluster.gpus_per_node=2 "
                    "cluster.nics_per_node=2",
                    "training.hierarchical_all_reduce=true parallelism.dp=8 parallelism.zero=1 cluster.gpus_per_node=2 "
                    "cluster.nics_per_node=2",
                    "training.hierarchical_all_reduce=true parallelism.dp=8 parallelism.zero=2 cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4 training.overlap.dp=false",
                    "training.hierarchical_all_reduce=true parallelism.dp=8 parallelism.zero=3 cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4",
                    "training.hierarchical_all_reduce=true parallelism.dp=6 parallelism.zero=0 training.global_batch=12 "
                    "model.norm=layer cluster.gpus_per_node=3 cluster.nics_per_node=3",  // padded parts
                    "training.hierarchical_all_reduce=true parallelism.dp=4 parallelism.zero=0 parallelism.tp=2 "
                    "parallelism.sp=true parallelism.pp=2 model.tied_embeddings=true cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4",
                    "training.hierarchical_all_reduce=true parallelism.dp=4 parallelism.zero=1 parallelism.tp=2 parallelism.pp=2 "
                    "parallelism.vpp=2 training.schedule=interleaved-1f1b training.bucket_MB=0.01 cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4"));

class OwnExpertAxis : public testing::TestWithParam<const char*> {
 protected:
  static Scenario scenario(const char* more = "") {
    const std::string experts =
        "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.expert_axis=own parallelism.sp=true ";
    return tiny_cluster(words(experts + GetParam() + " " + more));
  }
};

TEST_P(OwnExpertAxis, ShardedStepIsTheUnshardedStep) { EXPECT_LT(largest_difference(scenario()), 1e-5); }

TEST_P(OwnExpertAxis, FoldedTimesAreTheUnfoldedOnes) {
  EXPECT_GE(expect_equal_when_folded(scenario("cluster.fabric.oversubscription=[1,2,4]")), 1U);
}

INSTANTIATE_TEST_SUITE_P(
    InTwoLevels, OwnExpertAxis,
    testing::Values("parallelism.ep=4 parallelism.dp=2 parallelism.zero=3 parallelism.hsdp=4 cluster.gpus_per_node=4 "
                    "cluster.nics_per_node=4",
                    "parallelism.ep=4 parallelism.dp=2 parallelism.zero=0 training.hierarchical_all_reduce=true "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4",
                    "parallelism.ep=2 parallelism.dp=4 parallelism.zero=2 training.hierarchical_all_reduce=true "
                    "cluster.gpus_per_node=4 cluster.nics_per_node=4 parallelism.order=[dp,tp,cp,ep,pp]",
                    "parallelism.ep=2 parallelism.dp=2 parallelism.tp=2 parallelism.etp=2 parallelism.zero=1 "
                    "training.hierarchical_all_reduce=true cluster.gpus_per_node=4 cluster.nics_per_node=4",
                    "parallelism.ep=2 parallelism.dp=2 parallelism.tp=2 parallelism.zero=0 "
                    "training.hierarchical_all_reduce=true cluster.gpus_per_node=2 "
                    "cluster.nics_per_node=2"));  // one member on a node

INSTANTIATE_TEST_SUITE_P(
    Compressed, DataParallel,
    testing::Values("training.grad_compression=4 parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.01",
                    "training.grad_compression=2 parallelism.dp=4 parallelism.zero=1 training.overlap.dp=false",
                    "training.grad_compression=2 training.grad_dtype=bf16 parallelism.dp=4 parallelism.zero=2 parallelism.pp=2",
                    "training.grad_compression=4 parallelism.dp=4 parallelism.zero=3 parallelism.hsdp=2 parallelism.tp=2 "
                    "parallelism.sp=true",
                    "training.grad_compression=4 parallelism.dp=4 parallelism.zero=0 training.hierarchical_all_reduce=true "
                    "cluster.gpus_per_node=2 cluster.nics_per_node=2",
                    "training.grad_compression=2 parallelism.dp=1 parallelism.pp=2"));

Dag lowered(const std::string& overrides, bool folded = true) {
  const Scenario scenario = tiny_cluster(words(overrides));
  return lower(scenario, make_world(scenario, folded));
}

// Sizes of the tiny model. Two tables of 96 x 32; per layer q and output 32 x 32 each, k and v 16 x 32 each, gate, up and down
// 48 x 32 each, two norms of 32; the final norm.
constexpr std::int64_t table = 96 * 32;
constexpr std::int64_t layer = 2 * 32 * 32 + 2 * 16 * 32 + 3 * 48 * 32 + 2 * 32;
constexpr std::int64_t head = table + 32;
constexpr std::int64_t parameters = table + 4 * layer + head;

/// Bytes that a rank keeps all through the step for each parameter of the model: parameters, gradients and optimizer states.
double bytes_per_parameter(const std::string& overrides) {
  const Dag dag = lowered(overrides);
  const MemoryUse use = memory_use(dag, simulate(dag).timeline)[0];
  const Bytes bytes = use.parameters + use.gradients + use.optimizer;
  return static_cast<double>(bytes) / static_cast<double>(parameters);
}

// Rajbhandari et al. 2020 (ZeRO), section 3.1: weights and gradients of 2 bytes, an fp32 master copy and two moments,
// together 12.
TEST(StateMemory, FollowsTheClosedForms) {
  for (const int d : {2, 4, 8}) {
    const std::string mesh =
        "training.precision=bf16 training.grad_dtype=bf16 parallelism.dp=" + std::to_string(d) + " parallelism.zero=";
    EXPECT_DOUBLE_EQ(bytes_per_parameter(mesh + "0"), 16);
    EXPECT_DOUBLE_EQ(bytes_per_parameter(mesh + "1"), 4 + 12.0 / d);
    EXPECT_DOUBLE_EQ(bytes_per_parameter(mesh + "2"), 2 + 14.0 / d);
    EXPECT_DOUBLE_EQ(bytes_per_parameter(mesh + "3"), 16.0 / d);
  }
}

TEST(StateMemory, OfHsdpIsThatOfItsShardGroup) {
  const std::string bf16 = "training.precision=bf16 training.grad_dtype=bf16 parallelism.dp=8 parallelism.zero=3 ";
  EXPECT_DOUBLE_EQ(bytes_per_parameter(bf16 + "parallelism.hsdp=2"), 16.0 / 2);
  EXPECT_DOUBLE_EQ(bytes_per_parameter(bf16 + "parallelism.hsdp=4"), 16.0 / 4);
}

/// What rank 0 gathers and scatters over dp in a step, in elements: the tiny model is fp32.
struct Moved {
  std::int64_t gathered = 0, scattered = 0;
  bool operator==(const Moved&) const = default;
};
void PrintTo(const Moved& moved, std::ostream* out) {
  *out << moved.gathered << " gathered, " << moved.scattered << " scattered";
}

Moved moved(const std::string& overrides) {
  Moved sum;
  for (const auto& [what, volume] : volumes_of(lowered(overrides), 0)) {
    if (what.starts_with("all_gather dp")) sum.gathered += volume.bytes / 4;
    if (what.starts_with("reduce_scatter dp")) sum.scattered += volume.bytes / 4;
  }
  return sum;
}

// Twice and once; but the head's backward follows its forward, so it is gathered once, and so is the embedding between the
// backward of a micro-batch and the forward of the next.
TEST(Zero3Volume, GathersTwiceAndScattersOnce) {
  const std::string one = "parallelism.dp=8 parallelism.zero=3 ";
  EXPECT_EQ(moved(one), (Moved{2 * parameters - head, parameters}));
  const std::string four = "parallelism.dp=2 parallelism.zero=3 ";
  EXPECT_EQ(moved(four), (Moved{4 * (2 * parameters - head) - 3 * table, parameters}));
}

TEST(Zero3Volume, PrefetchKeepsWhatIsNeededAgainWithinReach) {
  const std::string one = "parallelism.dp=8 parallelism.zero=3 ";
  EXPECT_EQ(moved(one + "parallelism.prefetch=0"), (Moved{2 * parameters - head, parameters}));
  // Between forward and backward of the last layer: the head's two visits, reached by a prefetch of two.
  EXPECT_EQ(moved(one + "parallelism.prefetch=2"), (Moved{2 * parameters - head - layer, parameters}));
  EXPECT_EQ(moved(one + "parallelism.prefetch=100"), (Moved{parameters, parameters}));
}

TEST(Zero3Volume, KeepingWeightsSavesGathers) {
  const std::string four = "parallelism.dp=2 parallelism.zero=3 ";
  EXPECT_EQ(moved(four + "parallelism.reshard_after_forward=false"), (Moved{4 * parameters - 3 * table, parameters}));
  EXPECT_EQ(moved(four + "parallelism.gather_per_micro_batch=false"), (Moved{parameters, parameters}));
}

TEST(Zero3Volume, PipelinesGatherOncePerStepUnlessToldOtherwise) {
  // Rank 0 is on the first of two stages: the embedding and two layers, through which eight micro-batches go forward, then back.
  // The last forward of the second layer is followed by its first backward.
  const std::string stage =
      "parallelism.dp=2 parallelism.pp=2 parallelism.zero=3 training.global_batch=16 training.schedule=gpipe ";
  const std::int64_t all = table + 2 * layer;
  EXPECT_EQ(moved(stage), (Moved{all, all}));
  EXPECT_EQ(moved(stage + "parallelism.gather_per_micro_batch=true"), (Moved{all, all}));
  EXPECT_EQ(moved(stage + "parallelism.reshard_after_forward=true"), (Moved{16 * all - layer, all}));
}

/// Bytes of rank 0's collectives over dp of one kind, by the size of the communicator; of those of one family alone.
std::map<std::size_t, Bytes> bytes_by_size(const Dag& dag, OpKind op, const std::string& family = "") {
  std::map<std::size_t, Bytes> bytes;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    const bool gradients_or_weights = task.op == op && task.axis == Axis::dp && dag.name_of_task(id) != "gradient norm";
    if (!gradients_or_weights || task.rank != 0) continue;
    if (!family.empty() && !dag.communicator_of(task).name.starts_with(family)) continue;
    bytes[dag.communicator_of(task).members.size()] += dag.groups[task.group].bytes;
  }
  return bytes;
}

using BySize = std::map<std::size_t, Bytes>;

// Shard groups of four scatter whole gradients; two such groups all-reduce a quarter each.
TEST(HsdpVolume, ScattersInTheShardGroupAndReducesAcross) {
  const Dag dag = lowered("parallelism.dp=8 parallelism.zero=3 parallelism.hsdp=4");
  EXPECT_EQ(bytes_by_size(dag, OpKind::reduce_scatter), (BySize{{4, 4 * parameters}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_reduce), (BySize{{2, parameters}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_gather), (BySize{{4, 4 * (2 * parameters - head)}}));
}

// Nodes of four, two of them: only a quarter of the gradients crosses between nodes.
TEST(HierarchicalVolume, CrossesNodesWithAPartOnly) {
  const std::string nodes =
      "training.hierarchical_all_reduce=true cluster.gpus_per_node=4 cluster.nics_per_node=4 parallelism.dp=8 ";
  const Dag plain = lowered(nodes + "parallelism.zero=0");
  EXPECT_EQ(bytes_by_size(plain, OpKind::reduce_scatter), (BySize{{4, 4 * parameters}}));
  EXPECT_EQ(bytes_by_size(plain, OpKind::all_reduce), (BySize{{2, parameters}}));
  EXPECT_EQ(bytes_by_size(plain, OpKind::all_gather), (BySize{{4, 4 * parameters}}));
  const Dag sliced = lowered(nodes + "parallelism.zero=1");
  EXPECT_EQ(bytes_by_size(sliced, OpKind::reduce_scatter), (BySize{{4, 4 * parameters}, {2, parameters}}));
  EXPECT_EQ(bytes_by_size(sliced, OpKind::all_gather), (BySize{{4, 4 * parameters}, {2, parameters}}));
}

// Along an expert axis of its own the dense part has replicas, too: here eight. The experts' replicas, dp, stay in one piece.
constexpr std::int64_t with_routers = parameters + 4 * (8 * 32 - 3 * 48 * 32);
const std::string own_axis =
    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.expert_axis=own parallelism.ep=4 parallelism.dp=2 "
    "parallelism.sp=true cluster.gpus_per_node=4 cluster.nics_per_node=4 ";

TEST(OwnExpertAxisVolume, OfHsdpIsThatOfDenseRanks) {
  const Dag dag = lowered(own_axis + "parallelism.zero=3 parallelism.hsdp=4 parallelism.gather_per_micro_batch=false");
  EXPECT_EQ(bytes_by_size(dag, OpKind::reduce_scatter, "dp"), (BySize{{4, 4 * with_routers}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_reduce, "dp"), (BySize{{2, with_routers}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_gather, "dp"), (BySize{{4, 4 * with_routers}}));
}

TEST(OwnExpertAxisVolume, OfTheHierarchyCrossesNodesWithAPart) {
  const Dag dag = lowered(own_axis + "parallelism.zero=0 training.hierarchical_all_reduce=true");
  EXPECT_EQ(bytes_by_size(dag, OpKind::reduce_scatter, "dp"), (BySize{{4, 4 * with_routers}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_reduce, "dp"), (BySize{{2, with_routers}}));
  EXPECT_EQ(bytes_by_size(dag, OpKind::all_gather, "dp"), (BySize{{4, 4 * with_routers}}));
}

/// One member of each group on a node, or all: one level, and the very step without the hierarchy.
TEST(HierarchicalVolume, IsThatOfOneLevelWhereThereIsButOne) {
  for (const std::string mesh : {"parallelism.tp=2 parallelism.dp=4 cluster.gpus_per_node=2 cluster.nics_per_node=2 ",
                                 "parallelism.tp=2 parallelism.dp=4 cluster.gpus_per_node=8 cluster.nics_per_node=8 "}) {
    for (const std::string zero : {"parallelism.zero=0", "parallelism.zero=1"}) {
      const Dag flat = lowered(mesh + zero), asked = lowered(mesh + zero + " training.hierarchical_all_reduce=true");
      for (const OpKind op : {OpKind::all_reduce, OpKind::reduce_scatter, OpKind::all_gather})
        EXPECT_EQ(bytes_by_size(asked, op), bytes_by_size(flat, op)) << mesh << zero;
      EXPECT_EQ(simulate(asked).timeline.end, simulate(flat).timeline.end) << mesh << zero;
    }
  }
}

// A part of the bytes on the wire, and two kernels that read and write gradients: 4 bytes and 4 / ratio.
TEST(Compression, DividesWhatIsReducedAndCostsItsKernels) {
  for (const int ratio : {2, 4}) {
    const Dag dag = lowered("parallelism.dp=8 parallelism.zero=0 training.grad_compression=" + std::to_string(ratio));
    EXPECT_EQ(bytes_by_size(dag, OpKind::all_reduce), (BySize{{8, 4 * parameters / ratio}}));
    Bytes touched = 0;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].rank == 0 && dag.tasks[id].op == OpKind::scale) touched += cost_of(dag, id).bytes;
    }
    EXPECT_EQ(touched, 2 * (4 + 4 / ratio) * parameters);
  }
}

// No synchronisation between micro-batches: one reduction per bucket and step.
TEST(Accumulation, ReducesEachBucketOnce) {
  for (const char* mesh : {"parallelism.zero=0", "parallelism.zero=1", "parallelism.zero=2", "parallelism.zero=3"}) {
    const Dag dag = lowered("training.bucket_MB=0.01 parallelism.dp=2 " + std::string(mesh));
    std::map<BufferId, int> reductions;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      const OpKind op = dag.tasks[id].op;
      if ((op == OpKind::all_reduce || op == OpKind::reduce_scatter) && dag.name_of_task(id) == "gradients") {
        ++reductions[dag.buffers[dag.operands_of(id)[0].buffer].base];
      }
    }
    EXPECT_GT(reductions.size(), 4U) << mesh;
    for (const auto& [bucket, times] : reductions) EXPECT_EQ(times, 1) << mesh;
  }
}

/// When the last backward kernel of a rank ends and its first reduction of gradients starts.
std::pair<Seconds, Seconds> backward_and_reduction(const std::string& overrides) {
  const Dag dag = lowered(overrides, false);
  const Timeline timeline = simulate(dag).timeline;
  Seconds backward = 0, reduction = timeline.makespan();
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const Task& task = dag.tasks[id];
    if (task.rank != 0) continue;
    if (!is_communication(task.op) && task.phase == Phase::backward_weight) backward = std::max(backward, timeline.end[id]);
    if (dag.name_of_task(id) == "gradients") reduction = std::min(reduction, timeline.start[id]);
  }
  return {backward, reduction};
}

TEST(GradientReduction, BeginsDuringTheBackwardOnlyWhereItOverlaps) {
  for (const std::string mesh : {"parallelism.dp=4 parallelism.zero=0", "parallelism.dp=2 parallelism.zero=1 parallelism.pp=2"}) {
    const auto [backward, overlapped] = backward_and_reduction(mesh + " training.bucket_MB=0.01");
    EXPECT_LT(overlapped, backward) << mesh;
    const auto [again, after] = backward_and_reduction(mesh + " training.bucket_MB=0.01 training.overlap.dp=false");
    EXPECT_GE(after, again) << mesh;
  }
}

}  // namespace
}  // namespace tandem::studies::data_parallel_test
