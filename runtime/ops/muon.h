#pragma once

#include "runtime/base/host_device.h"
#include "runtime/ops/operation.h"

namespace tandem {

// Muon (Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; at scale: Liu et al. 2025, arXiv 2502.16982): a matrix
// goes where its momentum points, with all singular values made nearly 1. That is what five steps of a Newton-Schulz iteration of
// the fifth degree do to X, of which sums of squares of elements are at most 1, with A = X X^T (or X^T X and X P):
//
//   X = P X,   P = a I + b A + c A^2
//
// Products are gemm's; these are the operations around them. Of a matrix that ranks share out, each has a part of u, X and the
// weights; norm and A are sums over the ranks (scenarios/lowering/muon.h).

/// muon_momentum: grad, norm_square [1]; u; momentum, updated. With c = min(1, clip_norm / sqrt(norm_square)):
///   momentum = beta momentum + c grad,   u = c grad + beta momentum   (Nesterov's)
CostFunction muon_momentum_cost;
HostKernel muon_momentum_host;

/// muon_normalize: u, square [1]; x. x = u / (sqrt(square) + 1e-7)
CostFunction muon_normalize_cost;
HostKernel muon_normalize_host;

/// muon_polynomial: A [n,n], A^2 [n,n]; P [n,n].
CostFunction muon_polynomial_cost;
HostKernel muon_polynomial_host;

/// muon_update: x; param; master, updated. master -= learning_rate (scale x + weight_decay master);  param = master
CostFunction muon_update_cost;
HostKernel muon_update_host;

inline constexpr int newton_schulz_steps = 5;
inline constexpr float muon_epsilon = 1e-7F;

/// a, b and c: of Jordan et al., which take every singular value up to 1 to about 0.7 to 1.2 in five steps.
struct NewtonSchulz {
  float a = 3.4445F, b = -4.7750F, c = 2.0315F;
};

/// An element of P, which is on the diagonal or is not.
TANDEM_HOST_DEVICE inline float muon_polynomial_of(float gram, float square, bool diagonal) {
  constexpr NewtonSchulz factors;
  return (diagonal ? factors.a : 0.0F) + factors.b * gram + factors.c * square;
}

}  // namespace tandem
