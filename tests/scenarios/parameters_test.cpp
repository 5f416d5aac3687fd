#include "scenarios/lowering/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace tandem::scenarios::parameters_test {
namespace {

using enum ParameterKind;

ParameterSpec spec(ParameterKind kind, const std::vector<std::int64_t>& rows, std::int64_t columns, int uses = 1) {
  ParameterSpec spec{.kind = kind, .pieces = {}, .uses = uses};
  for (const std::int64_t r : rows) {
    spec.pieces.push_back({.tensor = "t", .tensor_rows = 2 * r, .tensor_columns = columns, .rows = r, .columns = columns});
  }
  return spec;
}

/// Two layers of a sharded, a fused and a replicated parameter each, between a tied table and a head.
class Allocated {
 public:
  DagBuilder builder;
  ChunkParameters parameters;
  std::vector<ParameterSpec> specs;

  Allocated(int zero, std::int64_t owners, std::int64_t owned, std::int64_t bucket_parameters) {
    specs.push_back(spec(tied, {11}, 3));
    for (int layer = 0; layer < 2; ++layer) {
      specs.push_back(spec(replicated, {5}, 1));
      specs.push_back(spec(sharded, {4, 2, 2}, 5));
      specs.push_back(spec(sharded, {7}, 6, 2));
    }
    specs.push_back(spec(sharded, {11}, 3));
    for (const ParameterSpec& s : specs) parameters.declare(s);
    TrainingSpec training;
    training.bucket_parameters = bucket_parameters;
    parameters.allocate(builder, builder.add_rank({}), training, {.zero = zero}, {owners, owned});
  }
  Buffer buffer(BufferId id) const { return builder.dag().buffers[id]; }
};

struct Interval {
  std::int64_t begin, end;
};

/// That the intervals follow each other without gap or overlap from 0 on; returns where they end.
std::int64_t expect_seamless(std::vector<Interval> intervals) {
  std::ranges::sort(intervals, {}, &Interval::begin);
  std::int64_t end = 0;
  for (const Interval& interval : intervals) {
    EXPECT_EQ(interval.begin, end);
    end = interval.end;
  }
  return end;
}

struct Layout {
  int zero;
  std::int64_t owners, bucket_parameters;
};
class Parameters : public testing::TestWithParam<Layout> {
 protected:
  Allocated allocate(std::int64_t owned = 0) const {
    return {GetParam().zero, GetParam().owners, owned, GetParam().bucket_parameters};
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, Parameters,
                         testing::Values(Layout{0, 1, 1}, Layout{1, 4, 50}, Layout{1, 3, 1'000'000}, Layout{2, 4, 1},
                                         Layout{2, 7, 45}, Layout{2, 1, 45}));

TEST_P(Parameters, FillBucketsWithoutGapOrOverlap) {
  const Allocated a = allocate();
  std::vector<std::vector<Interval>> weights(a.parameters.buckets().size()), gradients(a.parameters.buckets().size());
  for (ParameterId id = 0; id < a.specs.size(); ++id) {
    const std::size_t bucket = a.parameters.bucket_of(id);
    const Buffer& weight = a.buffer(a.parameters.weight(id));
    const Buffer& gradient = a.buffer(a.parameters.gradient(id));
    EXPECT_EQ(weight.shape, Shape(a.specs[id].rows(), a.specs[id].columns()));
    EXPECT_EQ(gradient.shape, weight.shape);
    EXPECT_EQ(weight.base, a.parameters.buckets()[bucket].weights);
    EXPECT_EQ(gradient.base, a.parameters.buckets()[bucket].gradients);
    EXPECT_EQ(gradient.offset, weight.offset);
    weights[bucket].push_back({weight.offset, weight.offset + weight.shape.elements()});
    gradients[bucket].push_back({gradient.offset, gradient.offset + gradient.shape.elements()});
  }
  for (std::size_t bucket = 0; bucket < weights.size(); ++bucket) {
    const std::int64_t used = expect_seamless(weights[bucket]);
    expect_seamless(gradients[bucket]);
    const std::int64_t padding = a.buffer(a.parameters.buckets()[bucket].weights).shape.elements() - used;
    EXPECT_GE(padding, 0);
    EXPECT_LT(padding, GetParam().owners);
  }
}

TEST_P(Parameters, SlicesOfAllOwnersPartitionABucket) {
  std::vector<std::vector<Interval>> slices(allocate().parameters.buckets().size());
  for (std::int64_t owned = 0; owned < GetParam().owners; ++owned) {
    const Allocated a = allocate(owned);
    for (std::size_t bucket = 0; bucket < slices.size(); ++bucket) {
      const Bucket& b = a.parameters.buckets()[bucket];
      const Buffer& slice = a.buffer(b.weight_slice);
      EXPECT_EQ(slice.base, b.weights);
      slices[bucket].push_back({slice.offset, slice.offset + slice.shape.elements()});
      for (const BufferId state : {b.gradient_slice, b.master, b.momentum, b.variance}) {
        EXPECT_EQ(a.buffer(state).shape.elements(), slice.shape.elements());
      }
    }
  }
  const Allocated a = allocate();
  for (std::size_t bucket = 0; bucket < slices.size(); ++bucket) {
    EXPECT_EQ(expect_seamless(slices[bucket]), a.buffer(a.parameters.buckets()[bucket].weights).shape.elements());
  }
}

TEST_P(Parameters, KindsLieInBucketsOfTheirOwn) {
  const Allocated a = allocate();
  for (ParameterId id = 0; id < a.specs.size(); ++id) {
    EXPECT_EQ(a.parameters.buckets()[a.parameters.bucket_of(id)].kind, a.specs[id].kind);
  }
}

// All but the last bucket of a kind are full, and none would be full without its last parameter.
TEST_P(Parameters, BucketsCloseOnceFull) {
  const Allocated a = allocate();
  const std::vector<Bucket>& buckets = a.parameters.buckets();
  std::vector<std::vector<std::int64_t>> sizes(buckets.size());
  for (auto id = static_cast<ParameterId>(a.specs.size()); id-- > 0;) {
    sizes[a.parameters.bucket_of(id)].push_back(a.specs[id].rows() * a.specs[id].columns());
  }
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    std::int64_t elements = 0;
    for (const std::int64_t size : sizes[bucket]) elements += size;
    const bool last = bucket + 1 == buckets.size() || buckets[bucket + 1].kind != buckets[bucket].kind;
    if (!last) {
      EXPECT_GE(elements, GetParam().bucket_parameters);
    }
    EXPECT_LT(elements - sizes[bucket].back(), GetParam().bucket_parameters);
  }
}

TEST_P(Parameters, LieInBackwardOrder) {
  const Allocated a = allocate();
  for (ParameterId later = 1; later < a.specs.size(); ++later) {
    for (ParameterId earlier = 0; earlier < later; ++earlier) {
      if (a.specs[earlier].kind != a.specs[later].kind) continue;
      const auto place = [&](ParameterId id) {
        return std::pair(a.parameters.bucket_of(id), a.buffer(a.parameters.weight(id)).offset);
      };
      EXPECT_LT(place(later), place(earlier));
    }
  }
}

TEST_P(Parameters, CountTheContributionsToEachBucket) {
  const Allocated a = allocate();
  std::vector<int> uses(a.parameters.buckets().size(), 0);
  for (ParameterId id = 0; id < a.specs.size(); ++id) uses[a.parameters.bucket_of(id)] += a.specs[id].uses;
  for (std::size_t bucket = 0; bucket < uses.size(); ++bucket) EXPECT_EQ(a.parameters.buckets()[bucket].uses, uses[bucket]);
}

TEST_P(Parameters, PiecesAreShardsBelowEachOther) {
  const Allocated a = allocate();
  const std::vector<ParameterShard>& shards = a.builder.dag().shards;
  std::size_t pieces = 0;
  for (ParameterId id = 0; id < a.specs.size(); ++id) {
    const Buffer& weight = a.buffer(a.parameters.weight(id));
    std::vector<Interval> rows;
    for (const ParameterShard& shard : shards) {
      const Buffer& block = a.buffer(shard.buffer);
      if (block.base != weight.base || block.offset < weight.offset || block.offset >= weight.offset + weight.shape.elements()) {
        continue;
      }
      EXPECT_EQ(block.shape, Shape(shard.rows, shard.columns));
      rows.push_back({block.offset - weight.offset, block.offset - weight.offset + block.shape.elements()});
    }
    EXPECT_EQ(rows.size(), a.specs[id].pieces.size());
    EXPECT_EQ(expect_seamless(rows), weight.shape.elements());
    pieces += a.specs[id].pieces.size();
  }
  EXPECT_EQ(shards.size(), pieces);
}

TEST(ParametersOfZero2, KeepOnlyTheirSliceOfTheGradient) {
  const Allocated sliced(2, 4, 1, 50);
  for (const Bucket& bucket : sliced.parameters.buckets()) {
    EXPECT_EQ(sliced.buffer(bucket.gradients).kind, BufferKind::communication);
    EXPECT_EQ(sliced.buffer(bucket.gradient_slice).kind, BufferKind::gradient);
    EXPECT_EQ(sliced.buffer(bucket.gradient_slice).base, bucket.gradient_slice);
  }
  for (const Allocated& kept : {Allocated(1, 4, 1, 50), Allocated(2, 1, 0, 50)}) {
    for (const Bucket& bucket : kept.parameters.buckets()) {
      EXPECT_EQ(kept.buffer(bucket.gradients).kind, BufferKind::gradient);
      EXPECT_EQ(kept.buffer(bucket.gradient_slice).base, bucket.gradients);
    }
  }
}

// In the order of a bucket, which is the backward's: a large weight, and the small ones up to the next large one; those before
// the first lie with it.
TEST(ParametersOfZero3, MayLieInABucketForEachLargeWeight) {
  const auto buckets_of = [](GatherUnit unit) {
    DagBuilder builder;
    ChunkParameters parameters;
    std::vector<ParameterId> ids;
    for (int layer = 0; layer < 2; ++layer) {
      parameters.begin_unit();
      for (const std::int64_t rows : {1, 400, 1, 1, 250, 1}) ids.push_back(parameters.declare(spec(sharded, {rows}, 400)));
    }
    parameters.allocate(builder, builder.add_rank({}), {}, {.zero = 3, .gather_unit = unit}, {4, 1});
    std::vector<std::size_t> buckets;
    for (const ParameterId id : ids) buckets.push_back(parameters.bucket_of(id));
    return buckets;
  };
  EXPECT_THAT(buckets_of(GatherUnit::layer), testing::ElementsAre(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(buckets_of(GatherUnit::weight), testing::ElementsAre(3, 3, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0));
}

}  // namespace
}  // namespace tandem::scenarios::parameters_test
