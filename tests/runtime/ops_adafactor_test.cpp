// Adafactor: one tensor by hand is torch.optim.Adafactor's algorithm, in double precision; slices and shards that add up what
// they sum make the same step as the whole.

#include <gtest/gtest.h>

#include "runtime/ops/adafactor.h"
#include "tests/runtime/ops_support.h"

namespace tandem::ops_adafactor_test {
namespace {

using Matrix = std::vector<double>;

/// What the algorithm makes of a tensor. Without `row` and `column` it is a vector.
struct Reference {
  std::int64_t rows, columns;
  Matrix weight, row, column, variance;

  void step(const Tensor& grad, double clip, const AdafactorAttributes& a) {
    constexpr double epsilon = 1.1920929e-7;
    const double move = std::pow(a.step, a.beta2_decay), n = static_cast<double>(rows * columns);
    const auto at = [&](std::int64_t i, std::int64_t j) { return static_cast<std::size_t>(i * columns + j); };
    Matrix g(weight.size()), u(weight.size());
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = clip * grad.values[i];
    double mean = 0;
    if (a.factored) {
      for (std::int64_t i = 0; i < rows; ++i) {
        double sum = 0;
        for (std::int64_t j = 0; j < columns; ++j) sum += g[at(i, j)] * g[at(i, j)];
        double& r = row[static_cast<std::size_t>(i)];
        r += move * (sum / static_cast<double>(columns) - r);
        mean += r / static_cast<double>(rows);
      }
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < rows; ++i) sum += g[at(i, j)] * g[at(i, j)];
        double& c = column[static_cast<std::size_t>(j)];
        c += move * (sum / static_cast<double>(rows) - c);
      }
    }
    double squares_of_u = 0, squares_of_w = 0;
    for (std::size_t i = 0; i < g.size(); ++i) {
      if (!a.factored) variance[i] += move * (g[i] * g[i] - variance[i]);
      const auto j = static_cast<std::int64_t>(i);
      const double estimate = a.factored ? row[static_cast<std::size_t>(j / columns)] *
                                               column[static_cast<std::size_t>(j % columns)] / std::max(epsilon, mean)
                                         : variance[i];
      u[i] = g[i] / std::sqrt(std::max(epsilon * epsilon, estimate));
      squares_of_u += u[i] * u[i];
      squares_of_w += weight[i] * weight[i];
    }
    const double rate = std::min<double>(a.learning_rate, 1 / std::sqrt(a.step)) *
                        std::max<double>(a.least_scale, std::sqrt(squares_of_w / n)) /
                        std::max(1.0, std::sqrt(squares_of_u / n) / a.threshold);
    for (std::size_t i = 0; i < g.size(); ++i)
      weight[i] = weight[i] * (1 - double{a.learning_rate} * a.weight_decay) - rate * u[i];
  }
};

/// Who holds `rows` x `columns` from (`row`, `column`) on of a tensor, and of these the elements from `first` on.
struct Holder {
  AdafactorPiece piece;
  std::int64_t row = 0, column = 0, first = 0, elements = 0;
};

/// A tensor in the hands of several, who add up what they sum: along the cut side, and all the norms.
class Held {
 public:
  Held(const std::vector<Holder>& holders, const Tensor& weight, const AdafactorAttributes& attributes)
      : attributes_(attributes), columns_(weight.shape[1]) {
    for (const Holder& holder : holders) {
      Part part{.holder = holder, .attributes = attributes};
      part.attributes.first = holder.first;
      part.attributes.pieces = {holder.piece};
      const AdafactorLayout layout(part.attributes);
      part.sums = Tensor{Shape(std::max<std::int64_t>(1, layout.sums))};
      part.state = Tensor{Shape(attributes.factored ? layout.factors() : holder.elements), 0.25F};
      part.squares = Tensor{Shape(2)};
      part.master = cut(weight, holder);
      part.param = Tensor{Shape(holder.elements)};
      part.shared = layout.shared;
      parts_.push_back(std::move(part));
    }
  }

  /// `owners`: so many in a row have slices of the same shard.
  void step(const Tensor& grad, Tensor& norm, std::int32_t number, std::size_t owners) {
    for (Part& part : parts_) {
      part.attributes.step = number;
      part.grad = cut(grad, part.holder);
      if (attributes_.factored)
        run(OpKind::adafactor_sums, part.attributes, {part.grad.host(), norm.host(), part.sums.host()});
      else
        run(OpKind::adafactor_variance, part.attributes, {part.grad.host(), norm.host(), part.state.host()});
    }
    if (attributes_.factored) {
      for (std::size_t first = 0; first < parts_.size(); first += owners)
        add_up(first, owners, 1, [](Part& part) { return std::span(part.sums.values); });
      for (std::size_t owner = 0; owner < owners; ++owner)
        add_up(owner, parts_.size() / owners, owners,
               [](Part& part) { return std::span(part.sums.values).first(static_cast<std::size_t>(part.shared)); });
      for (Part& part : parts_) run(OpKind::adafactor_factors, part.attributes, {part.sums.host(), part.state.host()});
    }
    for (Part& part : parts_)
      run(OpKind::adafactor_norms, part.attributes,
          {part.grad.host(), norm.host(), part.state.host(), part.master.host(), part.squares.host()});
    add_up(0, parts_.size(), 1, [](Part& part) { return std::span(part.squares.values); });
    for (Part& part : parts_)
      run(OpKind::adafactor_update, part.attributes,
          {part.grad.host(), norm.host(), part.state.host(), part.squares.host(), part.param.host(), part.master.host()});
  }

  void expect_weights(const Reference& reference) const {
    for (const Part& part : parts_) {
      for (std::int64_t i = 0; i < part.holder.elements; ++i) {
        const auto at = static_cast<std::size_t>(place(part.holder, i));
        EXPECT_NEAR(part.master[i], reference.weight[at], 1e-6);
        EXPECT_EQ(part.param[i], part.master[i]);
      }
    }
  }

 private:
  struct Part {
    Holder holder;
    AdafactorAttributes attributes;
    Tensor grad{Shape(1)}, sums{Shape(1)}, state{Shape(1)}, squares{Shape(1)}, master{Shape(1)}, param{Shape(1)};
    std::int64_t shared = 0;
  };
  AdafactorAttributes attributes_;
  std::int64_t columns_;
  std::vector<Part> parts_;

  std::int64_t place(const Holder& holder, std::int64_t i) const {
    const std::int64_t in_piece = holder.first + i;
    return (holder.row + in_piece / holder.piece.columns) * columns_ + holder.column + in_piece % holder.piece.columns;
  }
  Tensor cut(const Tensor& whole, const Holder& holder) const {
    Tensor part{Shape(holder.elements)};
    for (std::int64_t i = 0; i < part.size(); ++i) part[i] = whole[place(holder, i)];
    return part;
  }
  template <typename Numbers>
  void add_up(std::size_t first, std::size_t count, std::size_t stride, Numbers numbers) {
    std::vector<double> sums(numbers(parts_[first]).size());
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += numbers(parts_[first + n * stride])[i];
    for (std::size_t n = 0; n < count; ++n)
      for (std::size_t i = 0; i < sums.size(); ++i) numbers(parts_[first + n * stride])[i] = static_cast<float>(sums[i]);
  }
};

constexpr std::int64_t rows = 6, columns = 4;

/// Several steps from step 1 on, the gradients clipped to a quarter in the second one.
void expect_reference(const std::vector<Holder>& holders, std::size_t owners, AdafactorAttributes attributes) {
  Tensor weight = random_tensor(Shape(rows, columns), 1);
  Reference reference{.rows = rows,
                      .columns = columns,
                      .weight = Matrix(weight.values.begin(), weight.values.end()),
                      .row = Matrix(rows, 0.25),
                      .column = Matrix(columns, 0.25),
                      .variance = Matrix(rows * columns, 0.25)};
  Held held(holders, weight, attributes);
  for (std::int32_t step = 1; step <= 4; ++step) {
    const Tensor grad = random_tensor(Shape(rows, columns), 10U + static_cast<unsigned>(step));
    Tensor norm{Shape(1), step == 2 ? 16.0F : 0.25F};
    attributes.step = step;
    reference.step(grad, step == 2 ? 0.25 : 1.0, attributes);
    held.step(grad, norm, step, owners);
    held.expect_weights(reference);
  }
}

Holder all() {
  return {.piece = {.rows = rows, .columns = columns, .tensor_rows = rows, .tensor_columns = columns}, .elements = 24};
}

/// The shards, each in two slices that meet inside a row.
std::vector<Holder> in_slices(const std::vector<Holder>& shards) {
  std::vector<Holder> slices;
  for (const Holder& shard : shards) {
    for (const std::int64_t first : {0, 5}) {
      slices.push_back(shard);
      slices.back().first = first;
      slices.back().elements = first == 0 ? 5 : shard.elements - 5;
    }
  }
  return slices;
}

std::vector<Holder> by_rows(std::int32_t copies) {
  std::vector<Holder> shards;
  for (std::int64_t row = 0; row < rows; row += 3) {
    for (std::int32_t copy = 0; copy < copies; ++copy) {
      Holder shard = all();
      shard.row = row;
      shard.piece.rows = 3;
      shard.piece.copies = copies;
      shard.elements = 12;
      shards.push_back(shard);
    }
  }
  return shards;
}

std::vector<Holder> by_columns() {
  std::vector<Holder> shards{all(), all()};
  for (Holder& shard : shards) {
    shard.piece.columns = 2;
    shard.elements = 12;
  }
  shards[1].column = 2;
  return shards;
}

const AdafactorAttributes matrix{.weight_decay = 0.1F, .factored = true}, vector{.weight_decay = 0.1F};

TEST(Adafactor, StepsAsTorchDoes) {
  expect_reference({all()}, 1, matrix);
  expect_reference({all()}, 1, vector);
  AdafactorAttributes sharp = matrix;  // a step that is clipped, and a rate that follows the step
  sharp.threshold = 0.1F;
  sharp.learning_rate = 0.8F;
  sharp.weight_decay = 0;
  expect_reference({all()}, 1, sharp);
}

TEST(Adafactor, SlicesAndShardsAddUpToTheWhole) {
  for (const AdafactorAttributes& attributes : {matrix, vector}) {
    expect_reference(in_slices({all()}), 2, attributes);
    expect_reference(by_rows(1), 1, attributes);
    expect_reference(by_columns(), 1, attributes);
    expect_reference(in_slices(by_rows(1)), 2, attributes);
    expect_reference(in_slices(by_columns()), 2, attributes);
    expect_reference(by_rows(2), 1, attributes);
  }
}

// What shards add up comes first: columns of what is cut by rows, rows of what is cut by columns.
TEST(Adafactor, LaysOutWhatShardsAddUpFirst) {
  const AdafactorPiece whole{.rows = 5, .columns = 3, .tensor_rows = 5, .tensor_columns = 3},
      part_of_rows{.rows = 2, .columns = 3, .tensor_rows = 4, .tensor_columns = 3},
      part_of_columns{.rows = 5, .columns = 7, .tensor_rows = 5, .tensor_columns = 14};
  const AdafactorLayout layout({.factored = true, .pieces = {whole, part_of_rows, part_of_columns}});
  EXPECT_EQ(layout.shared, 3 + 5);
  EXPECT_EQ(layout.sums, (5 + 3) + (2 + 3) + (5 + 7));
  EXPECT_EQ(layout.factors(), layout.sums + 3);
  EXPECT_EQ(layout.places[1].columns, 0);
  EXPECT_EQ(layout.places[2].rows, 3);
  EXPECT_GE(layout.places[0].rows, layout.shared);
}

// Of 1000 gradients in bf16, 20 rows and 50 columns: sums read them twice; then factors move; norms and the update read
// gradients, factors and weights, and the update writes weights and their copy in bf16.
TEST(Adafactor, MovesTheBytesOfItsOperands) {
  const AdafactorAttributes a{.factored = true, .pieces = {{.rows = 20, .columns = 50, .tensor_rows = 20, .tensor_columns = 50}}};
  const OperandType grad{Shape(1000), DType::bf16}, master{Shape(1000), DType::f32}, one{Shape(1), DType::f32};
  const OperandType sums{Shape(70), DType::f32}, factors{Shape(71), DType::f32}, squares{Shape(2), DType::f32};
  EXPECT_EQ(cost(OpKind::adafactor_sums, a, {grad, one, sums}).bytes, 2 * 2000 + 4 + 280);
  EXPECT_EQ(cost(OpKind::adafactor_factors, a, {sums, factors}).bytes, 280 + 2 * 284);
  EXPECT_EQ(cost(OpKind::adafactor_variance, vector, {grad, one, master}).bytes, 2000 + 4 + 2 * 4000);
  EXPECT_EQ(cost(OpKind::adafactor_norms, a, {grad, one, factors, master, squares}).bytes, 2000 + 4 + 284 + 4000 + 8);
  EXPECT_EQ(cost(OpKind::adafactor_update, a, {grad, one, factors, squares, grad, master}).bytes,
            2000 + 4 + 284 + 8 + 2000 + 2 * 4000);
  EXPECT_THROW(cost(OpKind::adafactor_sums, a, {grad, one, squares}), std::logic_error);
}

}  // namespace
}  // namespace tandem::ops_adafactor_test
