#pragma once

#include <vector>

#include "runtime/ops/matrix_product.h"

namespace tandem {

/// head_gemm: a product for each head h with W_h, `columns` wide: the rows `first_row`, ... of the head's `head_rows` in a weight
/// w [H * head_rows, c], by HeadGemmAttributes. All tensors of tokens lie by heads.
///   down      x [s,b,H,a], w;              y [s,b,H,c] = x W_h            queries of latent attention, made to fit the latents
///   up        x [s,b,H,c], w;              y [s,b,H,a] = x W_h^T          with transpose_b; values from latents
///   gradient  x [s,b,H,a], y [s,b,H,c];    dw updated: dW_h += x^T y      with transpose_a
/// where W_h has a rows. So DeepSeek-V2 (arXiv 2405.04434, section 2.1.2) absorbs the projections up into queries and outputs.
///
/// FLOPs: 2 s b H a c.
CostFunction head_gemm_cost;
HostKernel head_gemm_host;

/// Returns one product for each head. Throws std::logic_error for shapes that break the rule.
std::vector<MatrixProduct> head_gemm_products(const Shape& a, const Shape& b, const Shape& c,
                                              const HeadGemmAttributes& attributes);

}  // namespace tandem
