#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/dag/device.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// What a framework runs beside an operation's own kernel because it did not fuse it in: kernels that only move memory.
struct ExtraWork {
  double kernels = 0;
  double bytes = 0;  ///< that they move, for each element of a product's result, and of any other operation's largest operand
  double holds = 0;  ///< bytes of memory that they take, for each such element, while the operation runs
  /// Elements, for each such element, that kernels load and store one at a time, whose bytes are not among `bytes`: PyTorch's
  /// where an operand is broadcast, a slice of another or of another type (aten/src/ATen/native/cuda/CUDALoops.cuh: all but
  /// vectorized_elementwise_kernel), and where slices are joined.
  double by_element = 0;
  bool operator==(const ExtraWork&) const = default;
};

/// The parts of a step whose code differs. What is recomputed is forward code.
enum class Pass : std::uint8_t {
  forward,
  backward,
  weights,
  optimizer
};
inline constexpr std::size_t pass_count = 4;
constexpr std::string_view name_of(Pass pass) {
  constexpr std::array<std::string_view, pass_count> names{"forward", "backward", "weights", "optimizer"};
  return names[static_cast<std::size_t>(pass)];
}

/// The time that the CPU takes to put one kernel into a GPU's queue. It issues a rank's kernels one after the other, ahead of the
/// GPU as far as it can; where it falls behind, the GPU waits for it.
struct IssueCost {
  Seconds forward = 0;  ///< of the forward and what is recomputed: in Python, mostly
  Seconds backward = 0;
  Seconds communication = 0;  ///< of one collective or transfer
  /// Of one kernel of many that a loop in C++ issues: of an expert, where each has its own, of a transfer that overlaps products
  /// of a tensor-parallel layer, or of a copy where collectives have lists of tensors. 0: as of any other.
  Seconds loop = 0;
  bool operator==(const IssueCost&) const = default;
};

/// The training framework, as the cost models see it. Data: `scenarios/presets/frameworks/NAME.yaml`, each number with its
/// source.
struct Software {
  std::string name = "generic";
  std::array<std::array<ExtraWork, op_kind_count>, pass_count> extra{};
  /// How many times the data of a tensor-parallel all-gather or reduce-scatter is copied because the sequence is not the
  /// outermost dimension, along which NCCL cuts.
  double sequence_copies = 0;
  IssueCost issue;
  std::vector<OpKind> waits_for;  ///< the CPU issues nothing more until these have ended
  /// Multiprocessors that matrix products leave to communication, whether there is any beside them or not: the grids of
  /// persistent kernels are sized for it (DeepGEMM's set_num_sms, cuBLAS's CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET).
  std::int32_t gemm_sm_margin = 0;
  /// Operations (grouped_gemm, cast) that are a kernel for each expert, as Transformer Engine's GroupedLinear has them: products
  /// by cuBLAS on several streams. The others are one kernel for all (CUTLASS, DeepGEMM).
  std::vector<OpKind> kernel_per_expert;
  /// GPUs on which an operand in fp8 with one scale for the tensor is cast once, as their products read it by rows and by columns
  /// alike (Transformer Engine, nvte_is_non_tn_fp8_gemm_supported).
  std::vector<Architecture> casts_once;
  /// Operands in fp8 and fp4 that sequence parallelism gathers are cast first: each rank casts its shard, and those travel.
  bool gathers_casts = false;
  /// A norm whose output only a linear layer multiplies by writes it in fp8 at once, by rows (Transformer Engine's
  /// LayerNormLinear).
  bool norm_casts = false;
  /// Delayed scaling: when a pass leaves the layers of a chunk, the maxima of what it cast are reduced over ranks, which all wait
  /// for it (Transformer Engine's FP8GlobalStateManager, reduce_and_update_fp8_tensors).
  bool reduces_amax = false;
  /// What tensor-parallel ranks contribute to the gradient of an input is summed after the weight's gradient, and nothing runs
  /// beside that: autograd gets both gradients of a linear layer at once. Else the sum runs beside the weight's gradient.
  bool sums_after_weights = false;
  /// The gradients of a router's logits are rounded to the type of its input before they are multiplied, as where the router is a
  /// linear layer of PyTorch's and its logits become fp32 after it.
  bool rounds_router_gradients = false;
  /// Products add biases, and sum up their gradients, in their epilogues (cuBLAS's BIAS and BGRADB), or a kernel beside them
  /// does; but not those of what experts return, which gates weight.
  bool fuses_bias = false;
  /// GPUs on which the products of experts also apply the activation, weighted by the gates, and cast what they make of it for
  /// the next ones: Transformer Engine's fused grouped MLP.
  std::vector<Architecture> fuses_experts;
  bool fp8_dispatch = true;  ///< DeepEP sends fp8 to the experts when training in fp8
  /// The CPU waits for the experts' tokens to arrive before it issues more: HybridEP's dispatch copies their numbers to it after
  /// the exchange (DeepEP's before).
  bool waits_for_dispatch = false;
  std::vector<OpKind> captured;  ///< operations in CUDA graphs of some layers: issuing their own kernels costs nothing
  Bytes reserved = 0;            ///< of every GPU's memory, beside tensors: buckets, communicators, what the allocator keeps
  /// Of every GPU's memory, by its architecture: what libraries of matrix products work in, allocated like a tensor.
  std::array<Bytes, architecture_count> workspaces{};
  /// A product that adds to a weight's gradient itself leaves autograd a tensor of the weight's size that nobody reads
  /// (Transformer Engine, get_dummy_wgrad: one for each shape of weight, kept).
  bool placeholder_gradients = false;
  /// Weights are made one by one and then move into buffers of all of them, and the optimizer's states are one tensor for each
  /// weight (Megatron-Core, distributed/param_and_grad_buffer.py).
  bool moves_weights = false;
  Bytes context = 0;                 ///< that CUDA takes of every GPU's memory, outside of PyTorch's allocator
  bool expandable_segments = false;  ///< PyTorch's allocator has them (PYTORCH_CUDA_ALLOC_CONF)
  /// Data-parallel all-gathers and reduce-scatters have a list of tensors on one side, one for each rank, as
  /// torch.distributed.all_gather and reduce_scatter have: PyTorch copies each through one flat tensor by a kernel of its own
  /// (ProcessGroupNCCL.cpp, allgather and flatten_for_scatter_gather).
  bool tensor_lists = false;

  const ExtraWork& beside(OpKind op, Pass pass) const {
    return extra[static_cast<std::size_t>(pass)][static_cast<std::size_t>(op)];
  }
  bool issues_for_free() const { return issue == IssueCost{} && waits_for.empty() && !waits_for_dispatch; }
};

}  // namespace tandem
