#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>

#include "runtime/ops/operation.h"

namespace tandem {

/// An operand in the GPU's memory, in the type the DAG gives it. Aligned to 256 bytes unless it is a view.
struct DeviceTensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  /// fp8 (e4m3) alone: a number in the GPU's memory, aligned to 16 bytes, or cuBLASLt does not multiply; an element's value is
  /// what is stored times *scale. Of the two that a cast writes, the second is stored as the transpose of the matrix,
  /// [columns_of][rows_of]; see runtime/ops/cast.cu.
  float* scale = nullptr;

  template <typename Element>
  Element* as() const {
    return static_cast<Element*>(data);
  }
};

/// Where a kernel runs: one CUDA stream, in which its launches are put without waiting for them. Legal while the stream is being
/// captured into a graph: no allocation, no synchronisation, no host memory that is read later.
struct Queue {
  cudaStream_t stream = nullptr;
  int multiprocessors = 1;
  void* scratch = nullptr;  ///< of this stream alone, aligned to 256 bytes; holds nothing between two kernels
  std::size_t scratch_bytes = 0;
};

/// Like an operation's host kernel, on operands in the GPU's memory. Sums are taken in fp32 (f32 operands: at least as exactly as
/// 1e-5), results rounded once to the operand's type, and the same numbers come out in every run: blocks that add to one sum do
/// so in a stated order (turns.h). But cuDNN's backward of attention adds up in an order of its own. Throws std::logic_error for
/// shapes that break the operation's rule, std::runtime_error for what CUDA reports.
using DeviceKernel = void(Queue&, std::span<const DeviceTensor>, const OpAttributes&);

/// Returns the bytes of scratch that a kernel needs, from types and shapes alone. A null function stands for none.
using ScratchFunction = std::size_t(std::span<const OperandType>, const OpAttributes&);

/// Prepares a kernel once ahead of a run, for each distinct types, shapes and attributes: one that has the choice between
/// algorithms tries them. It allocates and waits for the stream, so it is never called while the stream is captured. A null
/// function stands for nothing to do. A kernel that was not prepared runs, but perhaps more slowly.
using PrepareFunction = void(Queue&, std::span<const OperandType>, const OpAttributes&);

struct DeviceOperation {
  DeviceKernel* kernel = nullptr;
  ScratchFunction* scratch = nullptr;
  PrepareFunction* prepare = nullptr;
};

/// Returns the kernel of an operation, which every operation but communication has.
const DeviceOperation& device_operation(OpKind kind);

}  // namespace tandem
