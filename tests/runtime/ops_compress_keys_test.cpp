// Keys that stand for several positions, and which of them a query attends to.
#include <gtest/gtest.h>

#include "runtime/ops/sparse_attention.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_compress_keys_test {
namespace {

constexpr std::int64_t s = 9, b = 2, d = 4;
constexpr std::int32_t ratio = 3;

struct Compression {
  explicit Compression(bool overlap) : attributes{.ratio = ratio, .overlap = overlap}, width(overlap ? 2 * d : d) {}

  CompressAttributes attributes;
  std::int64_t width;
  Tensor c = random_tensor(Shape(s, b, width), 1), z = random_tensor(Shape(s, b, width), 2),
         bias = random_tensor(Shape(ratio, width), 3);
  Tensor k{Shape(s / ratio, b, d)};

  void forward() { run(OpKind::compress_keys, attributes, {c.host(), z.host(), bias.host(), k.host()}); }

  /// Of element e: the positions that a window reads, with the column of each.
  std::vector<std::pair<std::int64_t, std::int64_t>> read_by(std::int64_t window, std::int64_t e) const {
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (std::int64_t p = (window - 1) * ratio; attributes.overlap && window > 0 && p < window * ratio; ++p)
      places.emplace_back(p, e);
    for (std::int64_t p = window * ratio; p < (window + 1) * ratio; ++p) places.emplace_back(p, attributes.overlap ? d + e : e);
    return places;
  }
};

class CompressKeys : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Windows, CompressKeys, testing::Bool());

TEST_P(CompressKeys, IsTheWeightedMeanOfItsWindow) {
  Compression x(GetParam());
  x.forward();
  std::vector<double> expected;
  for (std::int64_t window = 0; window < s / ratio; ++window)
    for (std::int64_t i = 0; i < b * d; ++i) {
      double sum = 0, weighted = 0;
      for (const auto& [position, column] : x.read_by(window, i % d)) {
        const std::int64_t at = (position * b + i / d) * x.width + column;
        const double share = std::exp(double{x.z[at]} + x.bias[position % ratio * x.width + column]);
        sum += share;
        weighted += share * x.c[at];
      }
      expected.push_back(weighted / sum);
    }
  expect_close(x.k, expected, 1e-6);
}

TEST_P(CompressKeys, BackwardEqualsFiniteDifferences) {
  Compression x(GetParam());
  x.forward();
  Tensor dk = random_tensor(x.k.shape, 4), dc(x.c.shape), dz(x.z.shape), dbias(x.bias.shape, 0.0F);
  run(OpKind::compress_keys_backward, x.attributes,
      {x.c.host(), x.z.host(), x.bias.host(), x.k.host(), dk.host(), dc.host(), dz.host(), dbias.host()});
  const auto loss = [&] {
    x.forward();
    return dot(x.k, dk);
  };
  expect_gradient_of(loss, x.c, dc);
  expect_gradient_of(loss, x.z, dz);
  expect_gradient_of(loss, x.bias, dbias);
}

TEST_P(CompressKeys, MovesEachOperandOnce) {
  const Compression x(GetParam());
  const OperandType c{x.c.shape, DType::bf16}, bias{x.bias.shape, DType::bf16}, k{x.k.shape, DType::bf16};
  EXPECT_EQ(cost(OpKind::compress_keys, x.attributes, {c, c, bias, k}).bytes, 2 * (2 * x.c.size() + x.bias.size() + x.k.size()));
}

SparseAttentionAttributes windowed(std::int32_t window, std::int32_t compressed, Positions queries) {
  return {.queries = queries, .keys = {.start = {0, 0}, .length = {s, compressed}}, .window = window, .ratio = ratio};
}

const Positions all_positions{.start = {0, 0}, .length = {s, 0}};

TEST(WindowSelect, ListsTheWindowAndTheCompressedKeysThatEndBefore) {
  Ids chosen(Shape(1, s, 2 + 3));
  run(OpKind::window_select, windowed(2, 3, all_positions), {chosen.host()});
  const auto row = [&](std::int64_t query) {
    return std::vector<std::int32_t>(chosen.values.begin() + query * 5, chosen.values.begin() + (query + 1) * 5);
  };
  EXPECT_EQ(row(0), (std::vector<std::int32_t>{0, -1, -1, -1, -1}));
  EXPECT_EQ(row(1), (std::vector<std::int32_t>{0, 1, -1, -1, -1}));
  EXPECT_EQ(row(2), (std::vector<std::int32_t>{1, 2, s, -1, -1}));
  EXPECT_EQ(row(7), (std::vector<std::int32_t>{6, 7, s, s + 1, -1}));
  EXPECT_EQ(row(8), (std::vector<std::int32_t>{7, 8, s, s + 1, s + 2}));
}

TEST(WindowSelect, PutsWhatWasChosenBehindTheWindow) {
  Ids named(Shape(1, s, 2), -1), chosen(Shape(1, s, 3 + 2));
  named[2 * 8] = 0;
  named[2 * 8 + 1] = 2;
  run(OpKind::window_select, windowed(3, 3, all_positions), {named.host(), chosen.host()});
  EXPECT_EQ(std::vector<std::int32_t>(chosen.values.end() - 5, chosen.values.end()),
            (std::vector<std::int32_t>{6, 7, 8, s, s + 2}));
  EXPECT_EQ(std::vector<std::int32_t>(chosen.values.begin(), chosen.values.begin() + 5),
            (std::vector<std::int32_t>{0, -1, -1, -1, -1}));
}

// The closed form of the pairs is the count of what is listed, whichever positions a rank has.
TEST(WindowSelect, ListsAsManyPairsAsAttentionCosts) {
  for (const Positions& queries : {all_positions, Positions{.start = {2, 7}, .length = {3, 2}}})
    for (const std::int32_t window : {1, 2, 5, 9})
      for (const std::int32_t compressed : {0, 3}) {
        const SparseAttentionAttributes attributes = windowed(window, compressed, queries);
        Ids chosen(Shape(1, queries.count(), window + compressed));
        run(OpKind::window_select, attributes, {chosen.host()});
        const auto listed = std::ranges::count_if(chosen.values, [](std::int32_t key) { return key >= 0; });
        EXPECT_EQ(chosen_pairs(attributes, window + compressed), listed) << window << " " << compressed;
      }
}

}  // namespace
}  // namespace tandem::ops_compress_keys_test
