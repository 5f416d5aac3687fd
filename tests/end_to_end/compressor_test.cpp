// Compressed gradients: what is applied and what ranks hold back add up to the unsharded gradients, ranks of a group agree to the
// last bit, a compressor that can lose nothing loses nothing, and what travels and is kept follows the closed forms.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "runtime/analysis/memory.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "sim/simulate.h"
#include "studies/step/executed_step.h"
#include "studies/step/verification.h"
#include "tests/end_to_end/checks.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::compressor_test {
namespace {

const std::string top_k = "training.compressor.method=top-k training.compressor.ratio=7 ";
const std::string one_bit = "training.compressor.method=one-bit ";
const std::string powersgd = "training.compressor.method=powersgd training.compressor.rank=2 ";
const std::string experts = "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 ";

Scenario tiny(const std::string& overrides) { return tiny_cluster(words(overrides)); }

Dag lowered(const std::string& overrides, bool folded = true) {
  const Scenario scenario = tiny(overrides);
  return lower(scenario, make_world(scenario, folded));
}

/// The compressor, and the rest.
class Compressors : public testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  static std::string overrides() { return std::get<0>(GetParam()) + std::get<1>(GetParam()); }
};

TEST_P(Compressors, LoseNothingButToResiduals) { EXPECT_LT(largest_difference(tiny(overrides())), 1e-5); }

TEST_P(Compressors, FoldToTheSameTimes) {
  EXPECT_GE(expect_equal_when_folded(tiny(overrides() + " cluster.fabric.oversubscription=[1,2,4]")), 1U);
}

/// Ranks that update the same part of the model agree on it, or they would train different models.
TEST_P(Compressors, LeaveAllRanksTheSameWeights) {
  const Scenario scenario = tiny(overrides());
  ExecutedStep step(scenario, "test");
  step.execute();
  const Dag& dag = step.dag();
  std::map<BufferId, std::pair<std::int64_t, std::int64_t>> updated;  // by base buffer: the elements that its rank updates
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::adam) continue;
    const Buffer& weight = dag.buffers[dag.operands_of(id)[2].buffer];
    updated[weight.base] = {weight.offset, weight.offset + weight.shape.elements()};
  }
  std::map<std::tuple<std::string, std::int64_t, std::int64_t>, std::uint32_t> weights;
  std::size_t again = 0;
  for (const ParameterShard& shard : dag.shards) {
    const float* values = step.memory().tensor(shard.buffer).f32();
    const auto [begin, end] = updated.at(dag.buffers[shard.buffer].base);
    for (std::int64_t i = 0; i < shard.rows * shard.columns; ++i) {
      const std::int64_t in_base = dag.buffers[shard.buffer].offset + i;
      if (in_base < begin || in_base >= end) continue;
      const auto place = std::tuple{shard.tensor, shard.row + i / shard.columns, shard.column + i % shard.columns};
      const auto bits = std::bit_cast<std::uint32_t>(values[i]);
      const auto [known, is_new] = weights.emplace(place, bits);
      ASSERT_EQ(known->second, bits) << shard.tensor << " " << i;
      again += is_new ? 0 : 1;
    }
  }
  if (scenario.parallelism.zero == 0) {
    EXPECT_GE(again, weights.size());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Meshes, Compressors,
    testing::Combine(
        testing::Values(top_k, one_bit, powersgd),
        testing::Values(
            "parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.01",
            "parallelism.dp=3 parallelism.zero=0 training.global_batch=6 model.norm=layer model.gated=false",
            "parallelism.dp=8 parallelism.zero=0 training.overlap.dp=false",
            "parallelism.dp=3 parallelism.zero=1 training.global_batch=6 training.bucket_MB=0.004",  // padded slices
            "parallelism.dp=2 parallelism.cp=2 parallelism.zero=0 parallelism.tp=2",
            "parallelism.dp=4 parallelism.zero=1 training.bucket_MB=0.02 training.offload.optimizer=0.5 "
            "training.offload.overlap_optimizer=true cluster.host.link_GBps=50 cluster.host.memory_GBps=300",
            "parallelism.dp=2 parallelism.zero=1 parallelism.tp=2 parallelism.sp=true model.kv_heads=1",
            "parallelism.dp=2 parallelism.zero=0 parallelism.tp=2 parallelism.sp=true parallelism.pp=2 "
            "model.tied_embeddings=true parallelism.order=[dp,pp,tp,cp,ep]",
            "parallelism.dp=2 parallelism.zero=0 parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b "
            "training.grad_dtype=bf16",
            "parallelism.dp=2 parallelism.zero=1 parallelism.pp=2 training.schedule=zb-h1 training.bucket_MB=0.01",
            "parallelism.dp=2 parallelism.zero=0 parallelism.pp=2 training.schedule=dualpipe model.mtp_depth=1",
            "parallelism.dp=2 parallelism.zero=0 model.norm=layer model.gated=false model.linear_bias=true",
            "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=4 parallelism.ep=2 parallelism.zero=0",
            "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=2 parallelism.ep=2 parallelism.tp=2 "
            "parallelism.sp=true parallelism.expert_axis=own parallelism.zero=1")));

// Between one GPU and its host there is nothing to add up.
TEST(Compressor, ChangesNothingWithoutDataParallelism) {
  for (const std::string& method : {top_k, one_bit, powersgd}) {
    const std::string mesh = "parallelism.dp=1 parallelism.pp=2 parallelism.zero=0 ";
    EXPECT_EQ(simulate(lowered(mesh + method)).timeline.end, simulate(lowered(mesh)).timeline.end);
  }
}

TEST(Compressor, IsHeldAgainstTheUnshardedStepWithItsResiduals) {
  for (const std::string& method : {top_k, one_bit, powersgd}) {
    const Scenario scenario = tiny(method + "parallelism.dp=4 parallelism.zero=0");
    ExecutedStep step(scenario, "test");
    step.execute();
    const Verification verification = verify(step, scenario);
    EXPECT_TRUE(verification.same());
    ASSERT_TRUE(verification.compression_error.has_value());
    EXPECT_GT(*verification.compression_error, 0.1);  // what is applied alone is far from it
  }
}

bool is_residual(const InputShard& input) { return input.content == InputShard::Content::zeros; }

/// What the step applies, itself: without the help of residuals.
double largest_difference_as_applied(const ExecutedStep& step, const Scenario& scenario) {
  return compare_as_applied(step, scenario).largest();
}

TEST(TopK, OfAllIsTheUnshardedStep) {
  for (const std::string mesh : {"parallelism.dp=2 parallelism.zero=0", "parallelism.dp=4 parallelism.zero=1 parallelism.pp=2"}) {
    const Scenario scenario = tiny("training.compressor.method=top-k training.compressor.ratio=1 " + mesh);
    ExecutedStep step(scenario, "test");
    step.execute();
    EXPECT_LT(largest_difference_as_applied(step, scenario), 1e-5);
    for (const InputShard& input : step.dag().inputs) {
      if (!is_residual(input)) continue;
      const HostTensor residual = step.memory().tensor(input.buffer);
      for (std::int64_t i = 0; i < residual.shape.elements(); ++i) ASSERT_EQ(residual.f32()[i], 0);
    }
  }
}

// Two sequences of two tokens: no gradient of a matrix has a rank above four.
TEST(PowerSgd, OfFullRankIsTheUnshardedStep) {
  const Scenario scenario = tiny(
      "training.compressor.method=powersgd training.compressor.rank=4 parallelism.dp=2 parallelism.zero=0 training.sequence=2 "
      "training.global_batch=2");
  ExecutedStep step(scenario, "test");
  step.execute();
  EXPECT_LT(largest_difference_as_applied(step, scenario), 5e-5);
}

// With fewer columns than the gradients have dimensions something must be missing.
TEST(PowerSgd, OfLowerRankIsNot) {
  const Scenario scenario = tiny(
      "training.compressor.method=powersgd training.compressor.rank=2 parallelism.dp=2 parallelism.zero=0 training.sequence=2 "
      "training.global_batch=2");
  ExecutedStep step(scenario, "test");
  step.execute();
  EXPECT_GT(largest_difference_as_applied(step, scenario), 1e-2);
}

/// Calls visit(adam's gradient, its rank) for each bucket of the step.
template <typename Visit>
void for_each_gradient(const ExecutedStep& step, Visit visit) {
  for (TaskId id = 0; id < step.dag().tasks.size(); ++id)
    if (step.dag().tasks[id].op == OpKind::adam) visit(step.memory().tensor(step.dag().operands_of(id)[0].buffer));
}

TEST(TopK, AppliesNoMoreThanWasSelected) {
  ExecutedStep step(tiny(top_k + "parallelism.dp=2 parallelism.zero=0"), "test");
  step.execute();
  for_each_gradient(step, [](const HostTensor& gradient) {
    std::int64_t applied = 0;
    for (std::int64_t i = 0; i < gradient.shape.elements(); ++i) applied += gradient.f32()[i] != 0 ? 1 : 0;
    const std::int64_t selected = (gradient.shape.elements() + 6) / 7;
    EXPECT_GE(applied, selected);
    EXPECT_LE(applied, 2 * selected);
  });
}

TEST(OneBit, AppliesOneMagnitudeInEachPart) {
  ExecutedStep step(tiny(one_bit + "parallelism.dp=4 parallelism.zero=0"), "test");
  step.execute();
  for_each_gradient(step, [](const HostTensor& gradient) {
    std::set<float> magnitudes;
    for (std::int64_t i = 0; i < gradient.shape.elements(); ++i) magnitudes.insert(std::abs(gradient.f32()[i]));
    EXPECT_GE(magnitudes.size(), 1U);
    EXPECT_LE(magnitudes.size(), 4U);
  });
}

/// What a rank holds back of a buffer of gradients, or of their sum from the element `first` on, as its owner.
struct Residual {
  BufferId gradients, held_back;
  std::int64_t first = 0;
};

/// Of the tasks that compress: first what backwards made, then in the same order sums.
std::vector<Residual> residuals_of(const Dag& dag, RankIndex rank, std::int64_t place) {
  std::vector<Residual> residuals;
  std::size_t sums = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const auto operands = dag.operands_of(id);
    if (dag.tasks[id].rank != rank || dag.name_of_task(id) != "compress gradients" || dag.tasks[id].op == OpKind::gemm) continue;
    const BufferId read = operands[dag.tasks[id].op == OpKind::add ? 1 : 0].buffer, held_back = operands.back().buffer;
    if (dag.buffers[read].kind == BufferKind::gradient)
      residuals.push_back({read, held_back});
    else
      residuals.push_back({residuals.at(sums++).gradients, held_back, place * dag.buffers[held_back].shape.elements()});
  }
  return residuals;
}

/// A rank's gradients as Adam reads them, one after the other, and what lies in `values` by gradient in the same places.
std::vector<float> gradients_of(const ExecutedStep& step, RankIndex rank) {
  std::vector<float> all;
  for (TaskId id = 0; id < step.dag().tasks.size(); ++id) {
    if (step.dag().tasks[id].op != OpKind::adam || step.dag().tasks[id].rank != rank) continue;
    const HostTensor gradient = step.memory().tensor(step.dag().operands_of(id)[0].buffer);
    all.insert(all.end(), gradient.f32(), gradient.f32() + gradient.shape.elements());
  }
  return all;
}

// Whatever earlier steps left in the residuals is in this step's sum, or again in the residuals: they are filled at random.
TEST(Compressor, FeedsResidualsBack) {
  for (const std::string& method : {top_k, one_bit, powersgd}) {
    const std::string mesh = "parallelism.dp=2 parallelism.zero=0 training.bucket_MB=0.02 ";
    const Scenario scenario = tiny(method + mesh);
    ExecutedStep step(scenario, "test", {}, {.restores_residuals = true}), plain(tiny(mesh), "test");
    plain.execute();
    std::vector<float> expected = gradients_of(plain, 0);
    std::map<BufferId, std::size_t> place;  // by base buffer of rank 0 and 1: where its first element lies in `expected`
    for (const RankIndex rank : {0U, 1U}) {
      std::size_t offset = 0;
      for (TaskId id = 0; id < step.dag().tasks.size(); ++id) {
        if (step.dag().tasks[id].op != OpKind::adam || step.dag().tasks[id].rank != rank) continue;
        const Buffer& gradient = step.dag().buffers[step.dag().operands_of(id)[0].buffer];
        place[gradient.base] = offset;
        offset += static_cast<std::size_t>(gradient.shape.elements());
      }
      ASSERT_EQ(offset, expected.size());
    }
    std::mt19937 random(17);
    const float scale = *std::ranges::max_element(expected);
    std::size_t filled = 0;
    for (const RankIndex rank : {0U, 1U}) {
      for (const auto& [gradients, held_back, first] : residuals_of(step.dag(), rank, rank)) {
        const Buffer& buffer = step.dag().buffers[gradients];
        const HostTensor residual = step.memory().tensor(held_back);
        const std::size_t begin = place.at(buffer.base) + static_cast<std::size_t>(buffer.offset + first);
        const std::int64_t count = std::min(residual.shape.elements(), buffer.shape.elements() - first);
        for (std::int64_t i = 0; i < count; ++i) {
          residual.f32()[i] = scale * (static_cast<float>(random() % 2001) / 1000.0F - 1.0F);
          expected[begin + static_cast<std::size_t>(i)] += residual.f32()[i];
          ++filled;
        }
      }
    }
    EXPECT_GT(filled, expected.size());
    step.execute();
    for (const RankIndex rank : {0U, 1U}) {
      const std::vector<float> applied = gradients_of(step, rank);
      ASSERT_EQ(applied.size(), expected.size());
      for (std::size_t i = 0; i < applied.size(); ++i) ASSERT_NEAR(applied[i], expected[i], 1e-5 * scale) << method << i;
    }
  }
}

// Sizes of the tiny model: its matrices by rows and columns (q, k and v are one), and all its elements.
struct Matrix {
  std::int64_t rows, columns;
};
std::vector<Matrix> matrices() {
  std::vector<Matrix> all{{96, 32}, {96, 32}};
  for (int layer = 0; layer < 4; ++layer)
    for (const Matrix& of_layer : {Matrix{64, 32}, {32, 32}, {96, 32}, {32, 48}}) all.push_back(of_layer);
  return all;
}
std::int64_t elements_of_matrices() {
  std::int64_t sum = 0;
  for (const auto& [rows, columns] : matrices()) sum += rows * columns;
  return sum;
}
constexpr std::int64_t elements_of_norms = 9 * 32;
std::int64_t all_elements() { return elements_of_matrices() + elements_of_norms; }
/// Of signs, for each of eight ranks.
std::int64_t bytes_of_part() { return ((all_elements() + 7) / 8 + 7) / 8; }

/// Bytes of rank 0's collectives named "gradients", by operation.
std::map<OpKind, Bytes> bytes_of_gradients(const Dag& dag) {
  std::map<OpKind, Bytes> bytes;
  for (TaskId id = 0; id < dag.tasks.size(); ++id)
    if (is_communication(dag.tasks[id].op) && dag.tasks[id].rank == 0 && dag.name_of_task(id) == "gradients")
      bytes[dag.tasks[id].op] += dag.groups[dag.tasks[id].group].bytes;
  return bytes;
}

using ByOp = std::map<OpKind, Bytes>;

// One bucket.
TEST(CompressorVolume, OfTopKIsValuesAndIndicesOfAllRanks) {
  const Bytes selected = (all_elements() + 6) / 7, each = 4 + 4;
  EXPECT_EQ(bytes_of_gradients(lowered(top_k + "parallelism.dp=8 parallelism.zero=0")),
            (ByOp{{OpKind::all_gather, 8 * each * selected}}));
}

// A table of 2^32 elements has more than int32 counts: it is selected from in pieces.
TEST(CompressorVolume, OfTopKOfMoreThanIndicesCount) {
  const Dag dag = lowered(
      "training.compressor.method=top-k training.compressor.ratio=1000 parallelism.dp=8 parallelism.zero=0 model.vocab=16777216 "
      "model.hidden=256 model.head_dim=32");
  std::int64_t elements = 0;
  Bytes gathered = 0;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    if (dag.tasks[id].op != OpKind::top_k_select || dag.tasks[id].rank != 0) continue;
    const std::int64_t piece = dag.buffers[dag.operands_of(id)[0].buffer].shape.elements();
    EXPECT_LE(piece, std::int64_t{1} << 30);
    gathered += 8 * (4 + 4) * ((piece + 999) / 1000);
    elements += piece;
  }
  EXPECT_EQ(elements, dag.info.parameters);
  EXPECT_EQ(bytes_of_gradients(dag), (ByOp{{OpKind::all_gather, gathered}}));
}

TEST(CompressorVolume, OfOneBitIsABitTwiceAndScales) {
  const Bytes round = 8 * bytes_of_part() + 8 * 4;
  EXPECT_EQ(bytes_of_gradients(lowered(one_bit + "parallelism.dp=8 parallelism.zero=0")),
            (ByOp{{OpKind::all_to_all, round}, {OpKind::all_gather, round}}));
}

TEST(CompressorVolume, OfPowerSgdIsThatOfItsFactors) {
  for (const std::int64_t rank : {1, 2, 12}) {
    Bytes bytes = 4 * elements_of_norms;
    for (const auto& [rows, columns] : matrices())
      bytes += 4 * std::min(rank * (rows + columns) < rows * columns ? rank * (rows + columns) : rows * columns, rows * columns);
    EXPECT_EQ(bytes_of_gradients(lowered("training.compressor.method=powersgd parallelism.dp=8 parallelism.zero=0 "
                                         "training.compressor.rank=" +
                                         std::to_string(rank))),
              (ByOp{{OpKind::all_reduce, bytes}}));
  }
}

Bytes bytes_of_gradient_memory(const std::string& overrides) {
  const Dag dag = lowered("parallelism.dp=8 parallelism.zero=0 " + overrides);
  return memory_use(dag, simulate(dag).timeline)[0].gradients;
}

// Beside the gradients: as much once more, of one bit a part of 1 / 8 more, of PowerSGD a Q for each matrix.
TEST(CompressorMemory, IsThatOfItsResiduals) {
  const Bytes plain = bytes_of_gradient_memory("");
  EXPECT_EQ(plain, 4 * all_elements());
  EXPECT_EQ(bytes_of_gradient_memory(top_k), 2 * plain);
  EXPECT_EQ(bytes_of_gradient_memory(one_bit), 2 * plain + 4 * 8 * bytes_of_part());
  std::int64_t factors = 0;
  for (const auto& [rows, columns] : matrices()) factors += 2 * columns;
  EXPECT_EQ(bytes_of_gradient_memory(powersgd), plain + 4 * (elements_of_matrices() + factors));
}

// The first exchange of the bucket that is whole first runs beside what is left of the backward.
TEST(Compressor, SendsDuringTheBackwardOnlyWhereItOverlaps) {
  for (const std::string& method : {top_k, one_bit, powersgd}) {
    for (const bool overlaps : {true, false}) {
      const Dag dag = lowered(method + "parallelism.dp=4 parallelism.zero=0 training.bucket_MB=0.01 training.overlap.dp=" +
                              (overlaps ? "true" : "false"));
      const Timeline timeline = simulate(dag).timeline;
      Seconds backward = 0, sent = timeline.makespan();
      for (TaskId id = 0; id < dag.tasks.size(); ++id) {
        const Task& task = dag.tasks[id];
        if (task.rank != 0) continue;
        if (!is_communication(task.op) && task.layer >= 0) backward = std::max(backward, timeline.end[id]);
        if (is_communication(task.op) && dag.name_of_task(id) == "gradients") sent = std::min(sent, timeline.start[id]);
      }
      EXPECT_EQ(sent < backward, overlaps) << method;
    }
  }
}

// Over NICs a thousand times slower the step takes as long as its bytes on the wire.
TEST(Compressor, SavesTimeOnSlowLinks) {
  const auto time = [](const std::string& method) {
    const Dag dag = lowered(method +
                            " parallelism.dp=4 parallelism.zero=0 cluster.gpus_per_node=1 cluster.nics_per_node=1 "
                            "cluster.nic_gbps=0.01");
    return simulate(dag).timeline.makespan();
  };
  const Seconds plain = time("");
  EXPECT_LT(time("training.compressor.method=top-k training.compressor.ratio=1000"), 0.1 * plain);
  EXPECT_LT(time(one_bit), 0.1 * plain);
  EXPECT_LT(time("training.compressor.method=powersgd"), 0.2 * plain);
}

}  // namespace
}  // namespace tandem::studies::compressor_test
