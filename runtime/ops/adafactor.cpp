#include "runtime/ops/adafactor.h"

#include "runtime/ops/clip.h"
#include "runtime/ops/operands.h"
#include "runtime/ops/sum.h"

namespace tandem {
namespace {

bool cut_by_rows(const AdafactorPiece& piece) { return piece.rows < piece.tensor_rows; }
bool cut_by_columns(const AdafactorPiece& piece) { return piece.columns < piece.tensor_columns; }

template <typename OperandT>
std::array<OperandT, 3> operands_of_sums(std::span<const OperandT> operands, const AdafactorAttributes& attributes) {
  const auto all = unpack<3>(operands, "adafactor_sums");
  const auto& [grad, norm_square, sums] = all;
  expect_shapes(
      attributes.factored && sums.shape.elements() == AdafactorLayout(attributes).sums && norm_square.shape.elements() == 1,
      "adafactor_sums needs a sum for each row and column, and one squared norm");
  return all;
}

template <typename OperandT>
std::array<OperandT, 2> operands_of_factors(std::span<const OperandT> operands, const AdafactorAttributes& attributes) {
  const auto all = unpack<2>(operands, "adafactor_factors");
  const auto& [sums, factors] = all;
  const AdafactorLayout layout(attributes);
  expect_shapes(attributes.factored && sums.shape.elements() == layout.sums && factors.shape.elements() == layout.factors(),
                "adafactor_factors needs a sum for each row and column, as many factors, and a mean for each tensor");
  return all;
}

template <typename OperandT>
std::array<OperandT, 3> operands_of_variance(std::span<const OperandT> operands) {
  const auto all = unpack<3>(operands, "adafactor_variance");
  const auto& [grad, norm_square, variance] = all;
  expect_shapes(variance.shape.elements() == grad.shape.elements() && norm_square.shape.elements() == 1,
                "adafactor_variance needs as many variances as gradients, and one squared norm");
  return all;
}

void expect_state(const Shape& state, const Shape& grad, const AdafactorLayout& layout, bool factored) {
  expect_shapes(state.elements() == (factored ? layout.factors() : grad.elements()),
                "adafactor needs factors of its tensors, or as many variances as gradients");
}

template <typename OperandT>
std::array<OperandT, 5> operands_of_norms(std::span<const OperandT> operands, const AdafactorAttributes& attributes) {
  const auto all = unpack<5>(operands, "adafactor_norms");
  const auto& [grad, norm_square, state, master, squares] = all;
  const AdafactorLayout layout(attributes);
  expect_state(state.shape, grad.shape, layout, attributes.factored);
  expect_shapes(master.shape.elements() == grad.shape.elements() && norm_square.shape.elements() == 1 &&
                    squares.shape.elements() == 2 * layout.tensors,
                "adafactor_norms needs as many weights as gradients, one squared norm, and two sums for each tensor");
  return all;
}

template <typename OperandT>
std::array<OperandT, 6> operands_of_update(std::span<const OperandT> operands, const AdafactorAttributes& attributes) {
  const auto all = unpack<6>(operands, "adafactor_update");
  const auto& [grad, norm_square, state, squares, param, master] = all;
  const AdafactorLayout layout(attributes);
  expect_state(state.shape, grad.shape, layout, attributes.factored);
  expect_shapes(master.shape.elements() == grad.shape.elements() && param.shape.elements() == grad.shape.elements() &&
                    norm_square.shape.elements() == 1 && squares.shape.elements() == 2 * layout.tensors,
                "adafactor_update needs as many weights as gradients, one squared norm, and two sums for each tensor");
  return all;
}

/// u of the elements of a slice.
class Directions {
 public:
  Directions(const AdafactorAttributes& attributes, const AdafactorLayout& layout, const HostTensor& grad,
             const HostTensor& norm_square, const HostTensor& state)
      : attributes_(attributes),
        layout_(layout),
        grad_(grad.f32()),
        state_(state.f32()),
        clip_(clip_factor(*norm_square.f32(), attributes.clip_norm)) {}

  /// Of element `i` of the piece, which lies at `at` in the slice.
  float of(std::size_t piece, std::int64_t i, std::int64_t at) const {
    if (!attributes_.factored) return adafactor_direction(clip_ * grad_[at], state_[at]);
    const AdafactorPiece& p = attributes_.pieces[piece];
    const AdafactorLayout::Place& place = layout_.places[piece];
    const float estimate = adafactor_estimate(state_[place.rows + i / p.columns], state_[place.columns + i % p.columns],
                                              state_[layout_.sums + static_cast<std::ptrdiff_t>(piece)]);
    return adafactor_direction(clip_ * grad_[at], estimate);
  }

 private:
  const AdafactorAttributes& attributes_;
  const AdafactorLayout& layout_;
  const float *grad_, *state_;
  float clip_;
};

}  // namespace

AdafactorLayout::AdafactorLayout(const AdafactorAttributes& attributes)
    : places(attributes.pieces.size()), tensors(static_cast<std::int64_t>(attributes.pieces.size())) {
  if (!attributes.factored) return;
  const auto lay = [&](bool added_up) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      const AdafactorPiece& piece = attributes.pieces[i];
      if (cut_by_columns(piece) == added_up) {
        places[i].rows = sums;
        sums += piece.rows;
      }
      if (cut_by_rows(piece) == added_up) {
        places[i].columns = sums;
        sums += piece.columns;
      }
    }
  };
  lay(true);
  shared = sums;
  lay(false);
}

AdafactorPart part_in_slice(const AdafactorAttributes& attributes, const AdafactorPiece& piece, std::int64_t slice) {
  const std::int64_t begin = std::max(attributes.first - piece.offset, std::int64_t{0});
  const std::int64_t end = std::min(attributes.first + slice - piece.offset, piece.rows * piece.columns);
  return {.begin = begin, .end = std::max(begin, end), .at = piece.offset + begin - attributes.first};
}

// Rows and columns are summed in a pass over the gradients each, as torch does.
OpCost adafactor_sums_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [grad, norm_square, sums] = operands_of_sums(operands, std::get<AdafactorAttributes>(any));
  return memory_cost(2 * bytes_of(grad) + bytes_of(norm_square, sums));
}

void adafactor_sums_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, sums] = operands_of_sums(operands, attributes);
  const AdafactorLayout layout(attributes);
  const float clip = clip_factor(*norm_square.f32(), attributes.clip_norm);
  std::fill_n(sums.f32(), layout.sums, 0.0F);
  for (std::size_t p = 0; p < attributes.pieces.size(); ++p) {
    const AdafactorPiece& piece = attributes.pieces[p];
    const AdafactorPart part = part_in_slice(attributes, piece, grad.shape.elements());
    std::vector<double> rows(static_cast<std::size_t>(piece.rows)), columns(static_cast<std::size_t>(piece.columns));
    for (std::int64_t i = part.begin; i < part.end; ++i) {
      const double g = double{clip} * grad.f32()[part.at + i - part.begin];
      rows[static_cast<std::size_t>(i / piece.columns)] += g * g;
      columns[static_cast<std::size_t>(i % piece.columns)] += g * g;
    }
    const auto write = [&](const std::vector<double>& from, std::int64_t at, bool added_up) {
      const double times = added_up ? piece.copies : 1;
      for (const double sum : from) sums.f32()[at++] = static_cast<float>(sum / times);
    };
    write(rows, layout.places[p].rows, cut_by_columns(piece));
    write(columns, layout.places[p].columns, cut_by_rows(piece));
  }
}

OpCost adafactor_factors_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [sums, factors] = operands_of_factors(operands, std::get<AdafactorAttributes>(any));
  return memory_cost(bytes_of(sums) + 2 * bytes_of(factors));
}

void adafactor_factors_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [sums, factors] = operands_of_factors(operands, attributes);
  const AdafactorLayout layout(attributes);
  const float weight = adafactor_weight(attributes);
  for (std::size_t p = 0; p < attributes.pieces.size(); ++p) {
    const AdafactorPiece& piece = attributes.pieces[p];
    const auto& [rows, columns] = layout.places[p];
    const auto move = [&, sums = sums, factors = factors](std::int64_t from, std::int64_t count, std::int64_t terms) {
      for (std::int64_t i = from; i < from + count; ++i) {
        float& factor = factors.f32()[i];
        factor += weight * (sums.f32()[i] / static_cast<float>(terms) - factor);
      }
      return sum_of(count, [&](std::int64_t i) { return double{factors.f32()[from + i]}; }) / static_cast<double>(count);
    };
    const double of_rows = move(rows, piece.rows, piece.tensor_columns),
                 of_columns = move(columns, piece.columns, piece.tensor_rows);
    factors.f32()[layout.sums + static_cast<std::ptrdiff_t>(p)] = static_cast<float>(cut_by_rows(piece) ? of_columns : of_rows);
  }
}

OpCost adafactor_variance_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [grad, norm_square, variance] = operands_of_variance(operands);
  return memory_cost(bytes_of(grad, norm_square) + 2 * bytes_of(variance));
}

void adafactor_variance_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, variance] = operands_of_variance(operands);
  const float clip = clip_factor(*norm_square.f32(), attributes.clip_norm), weight = adafactor_weight(attributes);
  for (std::int64_t i = 0; i < grad.shape.elements(); ++i) {
    const float g = clip * grad.f32()[i];
    variance.f32()[i] += weight * (g * g - variance.f32()[i]);
  }
}

OpCost adafactor_norms_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [grad, norm_square, state, master, squares] = operands_of_norms(operands, std::get<AdafactorAttributes>(any));
  return memory_cost(bytes_of(grad, norm_square, state, master, squares));
}

void adafactor_norms_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, state, master, squares] = operands_of_norms(operands, attributes);
  const AdafactorLayout layout(attributes);
  const Directions directions(attributes, layout, grad, norm_square, state);
  for (std::size_t p = 0; p < attributes.pieces.size(); ++p) {
    const AdafactorPiece& piece = attributes.pieces[p];
    const AdafactorPart part = part_in_slice(attributes, piece, grad.shape.elements());
    const std::int64_t elements = part.end - part.begin;
    const float* weights = master.f32() + part.at;
    const double of_updates = sum_of(elements, [&](std::int64_t i) {
      const double u = directions.of(p, part.begin + i, part.at + i);
      return u * u;
    });
    const double of_weights = sum_of(elements, [&](std::int64_t i) { return double{weights[i]} * weights[i]; });
    squares.f32()[2 * p] = static_cast<float>(of_updates / piece.copies);
    squares.f32()[2 * p + 1] = static_cast<float>(of_weights / piece.copies);
  }
}

OpCost adafactor_update_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [grad, norm_square, state, squares, param, master] =
      operands_of_update(operands, std::get<AdafactorAttributes>(any));
  return memory_cost(bytes_of(grad, norm_square, state, squares, param) + 2 * bytes_of(master));
}

void adafactor_update_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<AdafactorAttributes>(any);
  const auto [grad, norm_square, state, squares, param, master] = operands_of_update(operands, attributes);
  const AdafactorLayout layout(attributes);
  const Directions directions(attributes, layout, grad, norm_square, state);
  const AdafactorRates rates(attributes);
  for (std::size_t p = 0; p < attributes.pieces.size(); ++p) {
    const AdafactorPiece& piece = attributes.pieces[p];
    const AdafactorPart part = part_in_slice(attributes, piece, grad.shape.elements());
    const float* of_tensor = squares.f32() + 2 * static_cast<std::ptrdiff_t>(p);
    const float rate = adafactor_rate(rates, of_tensor, static_cast<float>(piece.tensor_rows * piece.tensor_columns));
    for (std::int64_t i = part.begin, at = part.at; i < part.end; ++i, ++at) {
      float& weight = master.f32()[at];
      weight -= rates.decay * weight + rate * directions.of(p, i, at);
      param.f32()[at] = weight;
    }
  }
}

}  // namespace tandem
