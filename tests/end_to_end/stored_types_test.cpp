// Which tensors of fp8 and fp4 a GPU keeps in bf16, and that nothing else of the step changes.
#include "runtime/execution/stored_types.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "runtime/host/loss.h"
#include "scenarios/lowering/lower.h"
#include "tests/end_to_end/tiny.h"

namespace tandem::studies::stored_types_test {
namespace {

Dag lowered(const std::string& overrides) {
  const Scenario scenario = tiny_cluster(words("cluster.preset=dgx-b200 " + overrides));
  return lower(scenario, make_world(scenario, false));
}

std::set<DType> types_of(const Dag& dag) {
  std::set<DType> types;
  for (const Buffer& buffer : dag.buffers) types.insert(buffer.dtype);
  return types;
}

std::size_t changed(const Dag& before, const Dag& after) {
  EXPECT_EQ(before.buffers.size(), after.buffers.size());
  std::size_t count = 0;
  for (BufferId id = 0; id < before.buffers.size(); ++id) {
    const Buffer &a = before.buffers[id], &b = after.buffers[id];
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(after.buffers[b.base].dtype, b.dtype) << "a view has the type of its base";
    if (a.dtype == b.dtype && a.scaling == b.scaling) continue;
    EXPECT_TRUE(a.dtype == DType::f8 || a.dtype == DType::f4);
    EXPECT_EQ(b.dtype, DType::bf16);
    EXPECT_EQ(b.scaling, Scaling::none);
    ++count;
  }
  return count;
}

TEST(StoredTypes, OfOneScaleAreTheGpus) {
  for (const char* recipe : {"delayed", "current"}) {
    const Dag dag = lowered(std::string("training.precision=fp8 training.recipe=") + recipe);
    EXPECT_EQ(changed(dag, stored_on_gpus(dag)), 0U);
  }
}

TEST(StoredTypes, OfBlocksAreWider) {
  for (const char* overrides :
       {"training.precision=fp8 training.recipe=mxfp8", "training.precision=fp8 training.recipe=blockwise",
        "training.precision=fp4 parallelism.tp=2 parallelism.sp=true training.overlap.tp=true",
        "training.precision=fp4 training.fp4_param_gather=true parallelism.dp=2 parallelism.zero=1",
        "training.precision=fp4 training.fp8_attention=true"}) {
    SCOPED_TRACE(overrides);
    const Dag dag = lowered(overrides), stored = stored_on_gpus(dag);
    EXPECT_GT(changed(dag, stored), 0U);
    EXPECT_FALSE(types_of(stored).contains(DType::f8));
    EXPECT_FALSE(types_of(stored).contains(DType::f4));
  }
}

// Beside them the products of linear layers stay in fp8.
TEST(StoredTypes, OfAttentionAndGatheredWeightsAreWiderAlone) {
  for (const char* overrides :
       {"training.fp8_attention=true", "training.fp8_param_gather=true parallelism.dp=2 parallelism.zero=1"}) {
    SCOPED_TRACE(overrides);
    const Dag dag = lowered(std::string("training.precision=fp8 ") + overrides), stored = stored_on_gpus(dag);
    EXPECT_GT(changed(dag, stored), 0U);
    EXPECT_TRUE(types_of(stored).contains(DType::f8));
    for (TaskId id = 0; id < stored.tasks.size(); ++id) {
      const OpKind op = stored.tasks[id].op;
      std::set<DType> types;
      for (const Operand& operand : stored.operands_of(id)) types.insert(stored.buffers[operand.buffer].dtype);
      if (op == OpKind::attention || op == OpKind::attention_backward || is_communication(op)) {
        EXPECT_FALSE(types.contains(DType::f8));
      }
    }
  }
}

// Rows that arrive one shard after the other are cast as they come; weights, cast whole, stay in fp8.
TEST(StoredTypes, CastInPartsAreWider) {
  const Dag dag =
      lowered("training.precision=fp8 training.recipe=current parallelism.tp=2 parallelism.sp=true training.overlap.tp=true");
  const Dag stored = stored_on_gpus(dag);
  EXPECT_GT(changed(dag, stored), 0U);
  std::map<BufferId, std::set<std::int64_t>> offsets;
  for (TaskId id = 0; id < stored.tasks.size(); ++id) {
    if (stored.tasks[id].op != OpKind::cast) continue;
    for (const Operand& operand : stored.operands_of(id)) {
      const Buffer& buffer = stored.buffers[operand.buffer];
      if (buffer.dtype == DType::f8) offsets[buffer.base].insert(buffer.offset);
    }
  }
  EXPECT_FALSE(offsets.empty());
  for (const auto& [base, of_casts] : offsets) EXPECT_EQ(of_casts.size(), 1U) << base;
}

TEST(Loss, ThatIsNoNumberIsRefused) {
  EXPECT_NO_THROW(refuse_broken_loss(11.76));
  EXPECT_THROW(refuse_broken_loss(std::numeric_limits<double>::quiet_NaN()), std::runtime_error);
  EXPECT_THROW(refuse_broken_loss(std::numeric_limits<double>::infinity()), std::runtime_error);
}

}  // namespace
}  // namespace tandem::studies::stored_types_test
