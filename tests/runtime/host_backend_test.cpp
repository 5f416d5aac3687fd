#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "runtime/dag/dag_builder.h"
#include "runtime/executor.h"
#include "runtime/host/backend.h"
#include "tests/runtime/edges.h"

namespace tandem::host_backend_test {
namespace {

constexpr auto activation = BufferKind::activation;

BufferId vector_of(DagBuilder& builder, RankIndex rank, std::int64_t n) {
  return builder.buffer(rank, activation, DType::f32, Shape(n));
}

void fill(DagBuilder& builder, BufferId out, float value) {
  builder.kernel(OpKind::fill, ScaleAttributes{value}, {.name = "fill"}, {}, std::array{out});
}

void add(DagBuilder& builder, BufferId addend, BufferId sum) {
  builder.kernel(OpKind::add, {}, {.name = "add"}, std::array{addend, sum}, std::array{sum});
}

void expect_in_order(const Dag& dag, const Timeline& timeline) {
  for (const auto& [before, after] : edges_of(dag)) {
    EXPECT_LE(timeline.end[before], timeline.start[after]);
  }
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    EXPECT_LE(0, timeline.start[id]);
    EXPECT_LE(timeline.start[id], timeline.end[id]);
  }
}

// Y = X W^T with the columns of X and W split over two ranks: each multiplies its half, and the products are added.
TEST(HostBackend, RunsARowParallelProduct) {
  DagBuilder builder;
  const CommunicatorId tp = builder.add_communicator({.name = "tp", .members = {0, 1}, .layout = {}});
  std::vector<BufferId> x, w, y;
  for (std::uint32_t r = 0; r < 2; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    x.push_back(builder.buffer(rank, activation, DType::bf16, Shape(2, 2)));
    w.push_back(builder.buffer(rank, BufferKind::parameter, DType::bf16, Shape(3, 2)));
    y.push_back(builder.buffer(rank, activation, DType::bf16, Shape(2, 3)));
    builder.kernel(OpKind::gemm, GemmAttributes{.transpose_b = true}, {.name = "down"}, std::array{x[r], w[r]}, std::array{y[r]});
    builder.collective(OpKind::all_reduce, tp, {.name = "all-reduce", .stream = Stream::tp}, y[r], y[r]);
    add(builder, y[r], y[r]);
  }
  const Dag dag = builder.finish();
  HostMemory memory(dag, 1);
  const auto x_at = [](int i, int k) { return static_cast<float>(i + k + 1); };
  const auto w_at = [](int j, int k) { return static_cast<float>(j - k); };
  for (int r = 0; r < 2; ++r) {
    for (int i = 0; i < 4; ++i) memory.tensor(x[r]).f32()[i] = x_at(i / 2, 2 * r + i % 2);
    for (int i = 0; i < 6; ++i) memory.tensor(w[r]).f32()[i] = w_at(i / 2, 2 * r + i % 2);
  }

  const auto backend = make_host_backend(memory);
  const Timeline timeline = execute(dag, *backend);

  expect_in_order(dag, timeline);
  const std::span<const TaskId> all_reduce = dag.members_of(0);
  EXPECT_EQ(timeline.start[all_reduce[0]], timeline.start[all_reduce[1]]);
  EXPECT_EQ(timeline.end[all_reduce[0]], timeline.end[all_reduce[1]]);
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      float product = 0;
      for (int k = 0; k < 4; ++k) product += x_at(i, k) * w_at(j, k);
      for (int r = 0; r < 2; ++r) EXPECT_EQ(memory.tensor(y[r]).f32()[i * 3 + j], 2 * product);
    }
  }
}

TEST(HostBackend, AFailingKernelStopsTheRunAndIsNamed) {
  DagBuilder builder;
  std::vector<BufferId> after;
  for (std::uint32_t r = 0; r < 4; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = 10 + r});
    const BufferId x = vector_of(builder, rank, 4);
    for (int i = 0; i < 50; ++i) fill(builder, x, 1);
    // A fill without a value: its kernel throws.
    if (r == 2) builder.kernel(OpKind::fill, {}, {.name = "broken"}, {}, std::array{x});
    after.push_back(vector_of(builder, rank, 4));
    builder.kernel(OpKind::scale, ScaleAttributes{}, {.name = "after"}, std::array{x}, std::array{after.back()});
  }
  const Dag dag = builder.finish();
  HostMemory memory(dag, 1);
  const auto backend = make_host_backend(memory);
  try {
    execute(dag, *backend);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("task 'broken' on rank 12"));
  }
  EXPECT_TRUE(std::isnan(memory.tensor(after[2]).f32()[0]));
}

TEST(HostBackend, AMalformedCollectiveStopsTheRunAndIsNamed) {
  DagBuilder builder;
  const CommunicatorId dp = builder.add_communicator({.name = "dp", .members = {0, 1}, .layout = {}});
  for (std::uint32_t r = 0; r < 2; ++r) {
    const RankIndex rank = builder.add_rank({.world_rank = r});
    const BufferId whole = vector_of(builder, rank, 4);
    // Both ranks take the first half for theirs.
    const BufferId own = builder.view(whole, 0, Shape(2));
    fill(builder, own, 1);
    builder.collective(OpKind::all_gather, dp, {.name = "gather", .stream = Stream::dp}, own, whole);
  }
  const Dag dag = builder.finish();
  HostMemory memory(dag, 1);
  const auto backend = make_host_backend(memory);
  try {
    execute(dag, *backend);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("task 'gather'"), testing::HasSubstr("member 1")));
  }
}

TEST(HostBackend, ADagWithoutTasksEnds) {
  const Dag dag = DagBuilder().finish();
  HostMemory memory(dag, 1);
  EXPECT_TRUE(execute(dag, *make_host_backend(memory)).end.empty());
}

/// 16 ranks in a 4 x 4 mesh. Each round adds the sum of the ranks' numbers along the row (stream tp) and the number of ranks
/// along the column (stream dp) to an accumulator, and sends it to the next rank of the ring, all on streams of their own.
class Mesh {
 public:
  static constexpr std::uint32_t ranks = 16, side = 4;
  static constexpr int rounds = 40;
  static constexpr std::int64_t elements = 10;

  Mesh() {
    for (std::uint32_t i = 0; i < side; ++i) {
      Communicator row{.name = "row", .members = {}, .layout = {}}, column{.name = "column", .members = {}, .layout = {}};
      for (std::uint32_t j = 0; j < side; ++j) {
        row.members.push_back(i * side + j);
        column.members.push_back(j * side + i);
      }
      row_.push_back(builder_.add_communicator(row));
      column_.push_back(builder_.add_communicator(column));
    }
    for (std::uint32_t r = 0; r < ranks; ++r) {
      next_.push_back(builder_.add_communicator({.name = "next", .members = {r, (r + 1) % ranks}, .layout = {}}));
    }
    for (std::uint32_t r = 0; r < ranks; ++r) add_rank(r);
  }

  std::vector<BufferId> sums, received;
  Dag finish() { return builder_.finish(); }

 private:
  DagBuilder builder_;
  std::vector<CommunicatorId> row_, column_, next_;

  void add_rank(std::uint32_t r) {
    const RankIndex rank = builder_.add_rank({.world_rank = r});
    const BufferId row = vector_of(builder_, rank, elements), column = vector_of(builder_, rank, elements);
    const BufferId sum = vector_of(builder_, rank, elements), from_previous = vector_of(builder_, rank, elements);
    sums.push_back(sum);
    received.push_back(from_previous);
    fill(builder_, sum, 0);
    for (int round = 0; round < rounds; ++round) {
      fill(builder_, row, static_cast<float>(r));
      builder_.collective(OpKind::all_reduce, row_[r / side], {.name = "row", .stream = Stream::tp}, row, row);
      fill(builder_, column, 1);
      builder_.collective(OpKind::all_reduce, column_[r % side], {.name = "column", .stream = Stream::dp}, column, column);
      add(builder_, row, sum);
      add(builder_, column, sum);
      builder_.collective(OpKind::send, next_[r], {.name = "send", .stream = Stream::pp_send_forward}, sum, no_id);
      builder_.collective(OpKind::receive, next_[(r + ranks - 1) % ranks],
                          {.name = "receive", .stream = Stream::pp_receive_forward}, no_id, from_previous);
    }
  }
};

TEST(HostBackend, ManySmallTasksOnManyStreamsDoNotRace) {
  Mesh mesh;
  const Dag dag = mesh.finish();
  HostMemory memory(dag, 1);
  const auto backend = make_host_backend(memory);
  for (int repetition = 0; repetition < 2; ++repetition) expect_in_order(dag, execute(dag, *backend));
  // Row i holds 4i, 4i + 1, 4i + 2, 4i + 3: sum 16 i + 6. The column adds 4.
  const auto expected = [](std::uint32_t r) {
    const std::uint32_t row = r / Mesh::side;
    return static_cast<float>(Mesh::rounds * (16 * row + 6 + 4));
  };
  for (std::uint32_t r = 0; r < Mesh::ranks; ++r) {
    for (int e = 0; e < Mesh::elements; ++e) {
      EXPECT_EQ(memory.tensor(mesh.sums[r]).f32()[e], expected(r));
      EXPECT_EQ(memory.tensor(mesh.received[r]).f32()[e], expected((r + Mesh::ranks - 1) % Mesh::ranks));
    }
  }
}

}  // namespace
}  // namespace tandem::host_backend_test
