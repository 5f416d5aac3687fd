#include <gtest/gtest.h>

#include "tests/runtime/ops_support.h"

namespace tandem::ops_mamba_test {
namespace {

using Doubles = std::vector<double>;

Doubles doubles_of(const Tensor& tensor) { return {tensor.values.begin(), tensor.values.end()}; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Compares a gradient with central differences, in double precision, of `loss` by the elements of `x`, which it reads by
/// reference: they err by h^2 / 6 of the third derivative and 1e-16 / h of the loss, both below 1e-8.
void expect_gradient_in_double(const std::function<double()>& loss, Doubles& x, const Tensor& gradient) {
  constexpr double h = 1e-5;
  Doubles differences;
  for (double& value : x) {
    const double original = value;
    value = original + h;
    const double above = loss();
    value = original - h;
    differences.push_back((above - loss()) / (2 * h));
    value = original;
  }
  expect_close(gradient, differences, 2e-6);
}

// --- the convolution

constexpr std::int64_t conv_s = 6, conv_b = 2, conv_width = 9, taps = 4;

/// Channels 2 to 7 of 9 columns, by rows 5, 6 | 0, 1 | 3 of the weight.
const CausalConvAttributes conv{.first_column = 2, .row = {5, 0, 3}, .rows = {2, 2, 1}, .biased = true};
constexpr std::array<std::int64_t, 5> weight_rows{5, 6, 0, 1, 3};

Doubles convolved(const Doubles& x, const Doubles& weight) {
  Doubles y;
  for (std::int64_t t = 0; t < conv_s; ++t)
    for (std::int64_t b = 0; b < conv_b; ++b)
      for (std::int64_t c = 0; c < 5; ++c) {
        const std::int64_t row = weight_rows[static_cast<std::size_t>(c)] * (taps + 1);
        double sum = weight[static_cast<std::size_t>(row + taps)];
        for (std::int64_t back = 0; back < taps && back <= t; ++back)
          sum += weight[static_cast<std::size_t>(row + taps - 1 - back)] *
                 x[static_cast<std::size_t>(((t - back) * conv_b + b) * conv_width + 2 + c)];
        y.push_back(sum * sigmoid(sum));
      }
  return y;
}

TEST(CausalConv, EqualsItsFormula) {
  Tensor x = random_tensor(Shape(conv_s, conv_b, conv_width), 1), weight = random_tensor(Shape(7, taps + 1), 2);
  Tensor y(Shape(conv_s, conv_b, 5));
  run(OpKind::causal_conv, conv, {x.host(), weight.host(), y.host()});
  expect_close(y, convolved(doubles_of(x), doubles_of(weight)), 1e-6);
}

TEST(CausalConv, BackwardEqualsFiniteDifferencesAndLeavesOtherColumnsAlone) {
  Tensor x = random_tensor(Shape(conv_s, conv_b, conv_width), 1), weight = random_tensor(Shape(7, taps + 1), 2);
  Tensor dy = random_tensor(Shape(conv_s, conv_b, 5), 3), dx(x.shape, 0.0F), dweight(weight.shape, 0.0F);
  run(OpKind::causal_conv_backward, conv, {x.host(), weight.host(), dy.host(), dx.host(), dweight.host()});
  Doubles in = doubles_of(x), w = doubles_of(weight);
  const auto loss = [&] {
    const Doubles y = convolved(in, w);
    return std::inner_product(y.begin(), y.end(), dy.values.begin(), 0.0);
  };
  expect_gradient_in_double(loss, in, dx);  // which is 0 where nothing is read
  expect_gradient_in_double(loss, w, dweight);
  Tensor again(x.shape, 7.0F);
  run(OpKind::causal_conv_backward, conv, {x.host(), weight.host(), dy.host(), again.host(), dweight.host()});
  for (std::int64_t row = 0; row < conv_s * conv_b; ++row)
    for (const std::int64_t column : {0, 1, 7, 8}) EXPECT_EQ(again[row * conv_width + column], 7.0F);
}

TEST(CausalConv, MovesItsChannelsOnce) {
  const OperandType x{Shape(64, 2, 100), DType::bf16}, weight{Shape(7, taps + 1), DType::bf16}, y{Shape(64, 2, 5), DType::bf16};
  EXPECT_EQ(cost(OpKind::causal_conv, conv, {x, weight, y}).bytes, 2 * 64 * 2 * 5 * 2 + 7 * 5 * 2);
  const OperandType gradient{weight.shape, DType::f32};
  EXPECT_EQ(cost(OpKind::causal_conv_backward, conv, {x, weight, y, x, gradient}).bytes, 3 * 64 * 2 * 5 * 2 + 7 * 5 * (2 + 8));
}

// --- the scan

struct ScanSizes {
  std::int64_t s, b, heads, head_dim, groups, state, chunk, first_head, all_heads;
  std::int64_t inner() const { return heads * head_dim; }
  std::int64_t mixed() const { return inner() + 2 * groups * state; }
  std::int64_t projected() const { return inner() + mixed() + heads; }
  SsdAttributes attributes() const {
    return {.head_dim = static_cast<std::int32_t>(head_dim),
            .groups = static_cast<std::int32_t>(groups),
            .state = static_cast<std::int32_t>(state),
            .chunk = static_cast<std::int32_t>(chunk),
            .first_head = static_cast<std::int32_t>(first_head)};
  }
};

/// The recurrence, a position at a time.
Doubles scanned(const ScanSizes& n, const Doubles& mixed, const Doubles& projected, const Doubles& parameters) {
  Doubles out(static_cast<std::size_t>(n.s * n.b * n.inner()));
  const auto at = [](const Doubles& of, std::int64_t i) { return of[static_cast<std::size_t>(i)]; };
  for (std::int64_t b = 0; b < n.b; ++b)
    for (std::int64_t h = 0; h < n.heads; ++h) {
      Doubles state(static_cast<std::size_t>(n.head_dim * n.state));
      const std::int64_t parameter = n.first_head + h, group = h / (n.heads / n.groups);
      for (std::int64_t t = 0; t < n.s; ++t) {
        const std::int64_t row = t * n.b + b, keys = row * n.mixed() + n.inner() + group * n.state;
        const double raw = at(projected, (row + 1) * n.projected() - n.heads + h) + at(parameters, n.all_heads + parameter);
        const double dt = std::log1p(std::exp(raw)), decay = std::exp(-std::exp(at(parameters, parameter)) * dt);
        for (std::int64_t p = 0; p < n.head_dim; ++p) {
          const double x = at(mixed, row * n.mixed() + h * n.head_dim + p);
          double y = at(parameters, 2 * n.all_heads + parameter) * x;
          for (std::int64_t k = 0; k < n.state; ++k) {
            double& element = state[static_cast<std::size_t>(p * n.state + k)];
            element = decay * element + dt * x * at(mixed, keys + k);
            y += element * at(mixed, keys + n.groups * n.state + k);
          }
          const double z = at(projected, row * n.projected() + h * n.head_dim + p);
          out[static_cast<std::size_t>(row * n.inner() + h * n.head_dim + p)] = y * z * sigmoid(z);
        }
      }
    }
  return out;
}

class Scan : public testing::TestWithParam<std::int64_t> {
 protected:
  ScanSizes n{
      .s = 11, .b = 2, .heads = 4, .head_dim = 3, .groups = 2, .state = 5, .chunk = GetParam(), .first_head = 1, .all_heads = 6};
  Tensor mixed = random_tensor(Shape(n.s, n.b, n.mixed()), 1);
  Tensor projected = random_tensor(Shape(n.s, n.b, n.projected()), 2);
  Tensor parameters = random_tensor(Shape(3 * n.all_heads, 1), 3);
  Tensor out{Shape(n.s, n.b, n.inner())}, y{out.shape};

  void forward() {
    run(OpKind::ssd_scan, n.attributes(), {mixed.host(), projected.host(), parameters.host(), out.host(), y.host()});
  }
};

// One position a chunk; chunks that the last one does not fill; one chunk, with and without room.
INSTANTIATE_TEST_SUITE_P(Chunks, Scan, testing::Values(1, 3, 4, 11, 16));

TEST_P(Scan, InChunksEqualsTheRecurrence) {
  forward();
  expect_close(out, scanned(n, doubles_of(mixed), doubles_of(projected), doubles_of(parameters)), 1e-6);
}

TEST_P(Scan, BackwardEqualsFiniteDifferencesOfTheRecurrence) {
  forward();
  Tensor dout = random_tensor(out.shape, 4), dmixed(mixed.shape), dprojected(projected.shape, 0.0F);
  Tensor dparameters(parameters.shape, 0.0F);
  run(OpKind::ssd_scan_backward, n.attributes(),
      {mixed.host(), projected.host(), parameters.host(), y.host(), dout.host(), dmixed.host(), dprojected.host(),
       dparameters.host()});
  Doubles m = doubles_of(mixed), p = doubles_of(projected), w = doubles_of(parameters);
  const auto loss = [&] {
    const Doubles result = scanned(n, m, p, w);
    return std::inner_product(result.begin(), result.end(), dout.values.begin(), 0.0);
  };
  expect_gradient_in_double(loss, m, dmixed);
  expect_gradient_in_double(loss, p, dprojected);
  expect_gradient_in_double(loss, w, dparameters);
}

/// As in a model: 4096 positions, 64 heads of 64 in 8 groups, a state of 128, chunks of 256.
constexpr ScanSizes large{
    .s = 4096, .b = 2, .heads = 64, .head_dim = 64, .groups = 8, .state = 128, .chunk = 256, .first_head = 0, .all_heads = 64};

std::vector<OperandType> operands_of(const ScanSizes& n, bool backward) {
  const auto type = [](Shape shape) { return OperandType{shape, DType::bf16}; };
  const OperandType mixed = type(Shape(n.s, n.b, n.mixed())), projected = type(Shape(n.s, n.b, n.projected()));
  const OperandType parameters = type(Shape(3 * n.all_heads, 1)), out = type(Shape(n.s, n.b, n.inner()));
  if (!backward) return {mixed, projected, parameters, out, out};
  return {mixed, projected, parameters, out, out, mixed, projected, parameters};
}

TEST(ScanCost, CountsTheProductsOfChunks) {
  const double rows = 4096 * 2, states = 2 * rows * 64 * 64 * 128, keys = 2 * rows * 256 * 8 * 128, pairs = rows * 64 * 64 * 257;
  EXPECT_DOUBLE_EQ(operation(OpKind::ssd_scan).cost(operands_of(large, false), large.attributes()).flops,
                   2 * states + keys + pairs);
  EXPECT_DOUBLE_EQ(operation(OpKind::ssd_scan_backward).cost(operands_of(large, true), large.attributes()).flops,
                   5 * states + 3 * keys + 3 * pairs);
}

// Between the kernels travel, for each position: d and L twice written and read by two; the chunk's row of C B^T; and for each
// chunk a state, in fp32, then in bf16.
TEST(ScanCost, CountsWhatEachKernelMoves) {
  const std::vector<OpCost> parts = operation(OpKind::ssd_scan).parts(operands_of(large, false), large.attributes());
  const Bytes rows = 4096 * 2, x = rows * 4096 * 2, keys = rows * 8 * 128 * 2, sums = rows * 64 * 4,
              states = 2 * 16 * 4096 * 128 * 4;
  const Bytes products = rows * 8 * 256 * 4;
  ASSERT_EQ(parts.size(), 5);
  EXPECT_EQ(parts[0].bytes, sums / 2 + 2 * sums);
  EXPECT_EQ(parts[1].bytes, x + keys + 2 * sums + states);
  EXPECT_EQ(parts[2].bytes, states + states / 2);
  EXPECT_EQ(parts[3].bytes, 2 * keys + products);
  EXPECT_EQ(parts[4].bytes, products + 4 * x + 2 * sums + keys + states / 2 + 3 * 64 * 2);
}

TEST(ScanCost, IsTheSumOfItsKernels) {
  for (const bool backward : {false, true}) {
    const Operation& scan = operation(backward ? OpKind::ssd_scan_backward : OpKind::ssd_scan);
    const std::vector<OpCost> parts = scan.parts(operands_of(large, backward), large.attributes());
    const OpCost whole = scan.cost(operands_of(large, backward), large.attributes());
    OpCost sum;
    for (const OpCost& part : parts) {
      sum.flops += part.flops;
      sum.bytes += part.bytes;
    }
    EXPECT_EQ(scan.kernels, static_cast<int>(parts.size()));
    EXPECT_DOUBLE_EQ(sum.flops, whole.flops);
    EXPECT_EQ(sum.bytes, whole.bytes);
  }
}

// --- the norm

struct NormCase {
  bool gated, one_weight;
};

class GroupNorm : public testing::TestWithParam<NormCase> {
 protected:
  static constexpr std::int64_t rows = 6, groups = 3, width = 5;
  GroupNormAttributes attributes{.groups = groups, .gate_column = GetParam().gated ? 2 : 0};
  bool gated = GetParam().gated;
  Tensor x = random_tensor(Shape(3, 2, groups*width), 1), y{x.shape};
  Tensor z = random_tensor(Shape(3, 2, groups* width + 3), 3);  // the gate in columns 2 to 16 of 18
  Tensor weight = random_tensor(Shape(1, GetParam().one_weight ? width : groups* width), 2);

  Doubles normed(const Doubles& in, const Doubles& w, const Doubles& gate) const {
    Doubles result;
    for (std::size_t i = 0; i < in.size(); ++i) {
      double squares = 0;
      for (std::size_t j = i / width * width; j < (i / width + 1) * width; ++j) squares += in[j] * in[j] / double{width};
      const double g = gated ? gate[i / (groups * width) * (groups * width + 3) + 2 + i % (groups * width)] : 0;
      const double opened = gated ? g * sigmoid(g) : 1;
      result.push_back(w[i % w.size()] * in[i] / std::sqrt(squares + 1e-5) * opened);
    }
    return result;
  }
};

INSTANTIATE_TEST_SUITE_P(Kinds, GroupNorm,
                         testing::Values(NormCase{false, false}, NormCase{true, false}, NormCase{true, true},
                                         NormCase{false, true}));

TEST_P(GroupNorm, EqualsItsFormula) {
  if (gated)
    run(OpKind::group_norm, attributes, {x.host(), weight.host(), z.host(), y.host()});
  else
    run(OpKind::group_norm, attributes, {x.host(), weight.host(), y.host()});
  expect_close(y, normed(doubles_of(x), doubles_of(weight), doubles_of(z)), 1e-6);
}

TEST_P(GroupNorm, BackwardEqualsFiniteDifferences) {
  Tensor dy = random_tensor(y.shape, 4), dx(x.shape), dz(z.shape, 0.0F), dweight(weight.shape, 0.0F);
  if (gated)
    run(OpKind::group_norm_backward, attributes,
        {x.host(), weight.host(), z.host(), dy.host(), dx.host(), dz.host(), dweight.host()});
  else
    run(OpKind::group_norm_backward, attributes, {x.host(), weight.host(), dy.host(), dx.host(), dweight.host()});
  Doubles in = doubles_of(x), w = doubles_of(weight), gate = doubles_of(z);
  const auto loss = [&] {
    const Doubles result = normed(in, w, gate);
    return std::inner_product(result.begin(), result.end(), dy.values.begin(), 0.0);
  };
  expect_gradient_in_double(loss, in, dx);
  expect_gradient_in_double(loss, w, dweight);
  if (gated) expect_gradient_in_double(loss, gate, dz);
}

// --- the exchange

/// Packs on every rank, exchanges, and puts in order: position i of the sequence holds what its rank had of the columns of rank
/// r.
TEST(ColumnParts, LeadFromPartsOfTheSequenceToPartsOfTheColumns) {
  constexpr std::int64_t ranks = 4, s = 2, b = 3;
  for (const bool zigzag : {false, true}) {
    ColumnPartsAttributes attributes{.ranks = ranks, .zigzag = zigzag, .widths = {8, 2, 4}, .repeats = {1, 2, 1}};
    const auto value = [](std::int64_t position, std::int64_t batch, std::int64_t column) {
      return static_cast<float>(position * 1000 + batch * 100 + column);
    };
    const auto position_of = [=](std::int64_t rank, std::int64_t t) {
      return !zigzag ? rank * s + t : t == 0 ? rank : 2 * ranks - 1 - rank;
    };
    std::vector<Tensor> flat;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      Tensor x(Shape(s, b, 14));
      for (std::int64_t t = 0; t < s; ++t)
        for (std::int64_t i = 0; i < b * 14; ++i) x[t * b * 14 + i] = value(position_of(rank, t), i / 14, i % 14);
      flat.emplace_back(Shape(s * b * (8 + 4 + 4)));
      run(OpKind::pack_parts, attributes, {x.host(), flat.back().host()});
      Tensor back(x.shape);
      attributes.inverse = true;
      run(OpKind::pack_parts, attributes, {flat.back().host(), back.host()});
      attributes.inverse = false;
      for (std::int64_t i = 0; i < x.size(); ++i) EXPECT_EQ(back[i], x[i] * (i % 14 == 8 || i % 14 == 9 ? 2 : 1));
    }
    const std::array<std::array<std::int64_t, 4>, ranks> columns{{{0, 1, 8, 10}, {2, 3, 8, 11}, {4, 5, 9, 12}, {6, 7, 9, 13}}};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Tensor arrived(Shape(s * b * 16)), y(Shape(ranks * s, b, 4)), back(arrived.shape);
      std::int64_t at = 0;
      for (const std::int64_t share : {2, 1, 1}) {  // an all-to-all for each part
        const std::int64_t block = s * b * share;
        for (std::size_t from = 0; from < ranks; ++from)
          for (std::int64_t i = 0; i < block; ++i)
            arrived[at + static_cast<std::int64_t>(from) * block + i] =
                flat[from][at + static_cast<std::int64_t>(rank) * block + i];
        at += ranks * block;
      }
      run(OpKind::order_parts, attributes, {arrived.host(), y.host()});
      for (std::int64_t i = 0; i < y.size(); ++i)
        EXPECT_EQ(y[i], value(i / (4 * b), i / 4 % b, columns[rank][static_cast<std::size_t>(i % 4)]));
      attributes.inverse = true;
      run(OpKind::order_parts, attributes, {y.host(), back.host()});
      attributes.inverse = false;
      EXPECT_EQ(back.values, arrived.values);
    }
  }
}

}  // namespace
}  // namespace tandem::ops_mamba_test
