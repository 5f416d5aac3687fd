#include "runtime/ops/muon.h"

#include <algorithm>
#include <cmath>

#include "runtime/ops/clip.h"
#include "runtime/ops/operands.h"

namespace tandem {
namespace {

template <typename OperandT>
std::array<OperandT, 4> operands_of_momentum(std::span<const OperandT> operands) {
  const auto all = unpack<4>(operands, "muon_momentum");
  const auto& [grad, norm_square, u, momentum] = all;
  expect_shapes(u.shape.elements() == grad.shape.elements() && momentum.shape.elements() == grad.shape.elements() &&
                    norm_square.shape.elements() == 1,
                "muon_momentum needs equally many gradients, directions and momenta, and one squared norm");
  return all;
}

template <typename OperandT>
std::array<OperandT, 3> operands_of_normalize(std::span<const OperandT> operands) {
  const auto all = unpack<3>(operands, "muon_normalize");
  const auto& [u, square, x] = all;
  expect_shapes(u.shape.elements() == x.shape.elements() && square.shape.elements() == 1,
                "muon_normalize needs as many elements before and after, and one squared norm");
  return all;
}

template <typename OperandT>
std::array<OperandT, 3> operands_of_polynomial(std::span<const OperandT> operands) {
  const auto all = unpack<3>(operands, "muon_polynomial");
  const auto& [gram, square, p] = all;
  expect_shapes(p.shape.rank == 2 && p.shape[0] == p.shape[1] && gram.shape == p.shape && square.shape == p.shape,
                "muon_polynomial needs three square matrices of one size");
  return all;
}

template <typename OperandT>
std::array<OperandT, 3> operands_of_update(std::span<const OperandT> operands) {
  const auto all = unpack<3>(operands, "muon_update");
  const auto& [x, param, master] = all;
  expect_shapes(param.shape.elements() == x.shape.elements() && master.shape.elements() == x.shape.elements(),
                "muon_update needs as many directions as parameters");
  return all;
}

}  // namespace

OpCost muon_momentum_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [grad, norm_square, u, momentum] = operands_of_momentum(operands);
  return memory_cost(bytes_of(grad, norm_square, u) + 2 * bytes_of(momentum));
}

void muon_momentum_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MuonAttributes>(any);
  const auto [grad, norm_square, u, momentum] = operands_of_momentum(operands);
  const float clip = clip_factor(*norm_square.f32(), attributes.clip_norm);
  for (std::int64_t i = 0; i < grad.shape.elements(); ++i) {
    const float g = clip * grad.f32()[i];
    momentum.f32()[i] = attributes.momentum * momentum.f32()[i] + g;
    u.f32()[i] = g + attributes.momentum * momentum.f32()[i];
  }
}

OpCost muon_normalize_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [u, square, x] = operands_of_normalize(operands);
  return memory_cost(bytes_of(u, square, x));
}

void muon_normalize_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [u, square, x] = operands_of_normalize(operands);
  const float norm = std::sqrt(*square.f32()) + muon_epsilon;
  std::transform(u.f32(), u.f32() + u.shape.elements(), x.f32(), [=](float element) { return element / norm; });
}

OpCost muon_polynomial_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [gram, square, p] = operands_of_polynomial(operands);
  return memory_cost(bytes_of(gram, square, p));
}

void muon_polynomial_host(std::span<const HostTensor> operands, const OpAttributes&) {
  const auto [gram, square, p] = operands_of_polynomial(operands);
  const std::int64_t n = p.shape[0];
  for (std::int64_t i = 0; i < n * n; ++i) p.f32()[i] = muon_polynomial_of(gram.f32()[i], square.f32()[i], i % (n + 1) == 0);
}

OpCost muon_update_cost(std::span<const OperandType> operands, const OpAttributes&) {
  const auto [x, param, master] = operands_of_update(operands);
  return memory_cost(bytes_of(x, param) + 2 * bytes_of(master));
}

void muon_update_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MuonAttributes>(any);
  const auto [x, param, master] = operands_of_update(operands);
  for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
    float& weight = master.f32()[i];
    weight -= attributes.learning_rate * (attributes.scale * x.f32()[i] + attributes.weight_decay * weight);
    param.f32()[i] = weight;
  }
}

}  // namespace tandem
