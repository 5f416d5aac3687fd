#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/dag/dag.h"
#include "studies/kineto/kineto_file.h"

namespace tandem::studies {

/// What both a framework's kernels and a DAG's tasks can be told apart by. Frameworks fuse what lies between products and
/// attention in ways of their own, so that all of it is one family.
enum class KernelFamily : std::uint8_t {
  products,          ///< of matrices
  grouped_products,  ///< of experts, in one kernel
  attention,
  norms,
  scans,      ///< of layers with a state
  optimizer,  ///< whatever runs in its step
  others,
  copies,  ///< and fills
  communication
};
inline constexpr std::size_t kernel_family_count = 9;
std::string_view name_of(KernelFamily family);

/// Recognises a kernel by its name, as cuBLAS, CUTLASS, cuDNN, FlashAttention, Transformer Engine, PyTorch, DeepEP and, on AMD's
/// GPUs, Tensile, CK and AITER name theirs; table in kernel_names.cpp.
KernelFamily family_of(const RecordedKernel& kernel);
KernelFamily family_of(const Task& task);

/// Returns what a kernel of communication does: by what PyTorch recorded beside it, or by its name. Nothing for other kernels,
/// and where neither tells (a kernel that NCCL launches for a group of calls).
std::optional<OpKind> collective_of(const RecordedKernel& kernel);

}  // namespace tandem::studies
