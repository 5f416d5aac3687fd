// Tasks are of one number exactly where nothing that a kernel's time depends on tells them apart.
#include "runtime/dag/distinct_kernels.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "runtime/dag/dag_builder.h"

namespace tandem::distinct_kernels_test {
namespace {

/// Seeded random steps of few kinds of kernels, so that many are alike and as many differ in one thing.
class FewKinds {
 public:
  explicit FewKinds(std::uint32_t seed) : random_(seed) {
    for (std::uint32_t r = 0; r < 4; ++r) builder_.add_rank({.world_rank = r, .device = below(2)});
    world_ = builder_.add_communicator({.name = "all", .members = {0, 1, 2, 3}, .layout = {}});
  }

  Dag build(int events) {
    for (int event = 0; event < events; ++event) {
      if (below(10) == 0)
        exchange();
      else
        kernel();
    }
    return builder_.finish();
  }

 private:
  std::mt19937 random_;
  DagBuilder builder_;
  CommunicatorId world_ = 0;

  std::uint32_t below(std::uint32_t end) { return std::uniform_int_distribution<std::uint32_t>(0, end - 1)(random_); }
  std::int64_t dim() { return 1 + below(2); }

  BufferId some_buffer(RankIndex rank) {
    const DType type = below(3) == 0 ? DType::f8 : DType::bf16;
    const Scaling scaling = below(3) == 0 ? Scaling::tensor : Scaling::none;
    const Shape shape = below(3) == 0 ? Shape(2 * dim()) : Shape(dim(), dim(), 2);
    return builder_.buffer(rank, BufferKind::activation, type, shape, scaling);
  }

  void kernel() {
    constexpr std::array ops{OpKind::scale, OpKind::add};
    constexpr std::array phases{Phase::forward, Phase::recompute, Phase::backward_input, Phase::optimizer};
    const RankIndex rank = below(4);
    std::vector<BufferId> reads{some_buffer(rank)};
    if (below(4) == 0) reads.push_back(some_buffer(rank));
    builder_.kernel(ops[below(2)], ScaleAttributes{.factor = static_cast<float>(below(2))},
                    {.name = below(2) == 0 ? "one" : "other",
                     .phase = phases[below(4)],
                     .stream = below(6) == 0 ? Stream::host : Stream::compute,
                     .micro_batch = static_cast<std::int32_t>(below(3))},
                    reads, {{some_buffer(rank)}});
  }

  void exchange() {
    for (RankIndex rank = 0; rank < 4; ++rank) {
      const BufferId data = builder_.buffer(rank, BufferKind::activation, DType::f32, Shape(8));
      builder_.collective(OpKind::all_reduce, world_, {.name = "sum", .stream = Stream::dp}, data, data);
    }
  }
};

using Type = std::tuple<std::array<std::int64_t, 4>, std::uint8_t, DType, Scaling>;
using Kind = std::tuple<OpKind, OpAttributes, std::vector<Type>, Pass, std::uint32_t, bool>;

Kind kind_of(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  std::vector<Type> types;
  for (const OperandType& type : kernel_of(dag, id).operands)
    types.emplace_back(type.shape.dims, type.shape.rank, type.dtype, type.scaling);
  return {task.op,
          dag.attributes[task.attributes],
          std::move(types),
          pass_of(task.phase),
          dag.ranks[task.rank].device,
          task.stream == Stream::host};
}

class DistinctKernelsOfSteps : public testing::TestWithParam<std::uint32_t> {};

TEST_P(DistinctKernelsOfSteps, AreOneWhereAllThatCountsIsEqual) {
  const Dag dag = FewKinds(GetParam()).build(3000);
  std::map<Kind, KernelId> numbers;  // in the order in which they are first met
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    const KernelId kernel = dag.tasks[id].kernel;
    if (is_communication(dag.tasks[id].op)) {
      ASSERT_EQ(kernel, no_id);
      continue;
    }
    const auto [found, is_new] = numbers.try_emplace(kind_of(dag, id), static_cast<KernelId>(numbers.size()));
    ASSERT_EQ(kernel, found->second) << id;
    if (is_new) {
      ASSERT_EQ(dag.first_of_kernel[kernel], id);
    }
  }
  EXPECT_EQ(dag.first_of_kernel.size(), numbers.size());
  EXPECT_GT(numbers.size(), 200U);  // the table grew
  EXPECT_LT(3 * numbers.size(), 2 * dag.tasks.size());
}

TEST_P(DistinctKernelsOfSteps, AreTheSameOfACompleteDag) {
  const Dag dag = FewKinds(GetParam()).build(1000);
  Dag again = dag;
  number_kernels(again);
  EXPECT_TRUE(again.tasks == dag.tasks);
  EXPECT_EQ(again.first_of_kernel, dag.first_of_kernel);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DistinctKernelsOfSteps, testing::Range(0U, 5U));

}  // namespace
}  // namespace tandem::distinct_kernels_test
