#include "runtime/ops/host_gemm.h"

#include "runtime/ops/open_blas.h"

namespace tandem {
namespace {

CBLAS_TRANSPOSE transpose_of(const HostMatrix& matrix) { return matrix.transposed ? CblasTrans : CblasNoTrans; }

}  // namespace

void host_gemm(GemmSize size, HostMatrix a, HostMatrix b, HostMatrix c, float factor, bool accumulate) {
  open_blas().sgemm(CblasRowMajor, transpose_of(a), transpose_of(b), static_cast<blasint>(size.m), static_cast<blasint>(size.n),
                    static_cast<blasint>(size.k), factor, a.data, static_cast<blasint>(a.stride), b.data,
                    static_cast<blasint>(b.stride), accumulate ? 1.0F : 0.0F, c.data, static_cast<blasint>(c.stride));
}

void host_gemm(const MatrixProduct& product, std::span<const HostTensor, 3> operands, bool accumulate) {
  const auto matrix = [](const HostTensor& tensor, const MatrixSlice& slice) {
    return HostMatrix{tensor.f32() + slice.offset, slice.stride, slice.transposed};
  };
  if (product.size.m == 0 || product.size.n == 0) return;
  host_gemm(product.size, matrix(operands[0], product.a), matrix(operands[1], product.b), matrix(operands[2], product.c), 1.0F,
            accumulate);
}

}  // namespace tandem
