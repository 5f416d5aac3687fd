#include "studies/kineto/kernel_names.h"

#include <algorithm>
#include <array>

#include "runtime/base/lower_case.h"

namespace tandem::studies {
namespace {

struct FamilyName {
  std::string_view part;  ///< of a kernel's name in lower case
  KernelFamily family;
};

/// The first that a name contains decides.
constexpr FamilyName family_names[] = {
    {"nccl", KernelFamily::communication},  // RCCL's begin so, too
    {"rccl", KernelFamily::communication},
    {"deep_ep::", KernelFamily::communication},
    {"::ep::", KernelFamily::communication},
    {"hybrid_ep", KernelFamily::communication},
    {"symm_mem", KernelFamily::communication},
    {"userbuffers", KernelFamily::communication},
    {"multi_tensor_apply", KernelFamily::optimizer},
    {"adam", KernelFamily::optimizer},
    {"l2norm", KernelFamily::optimizer},
    {"grouped_gemm::cuda::utils", KernelFamily::others},
    {"grouped_gemm", KernelFamily::grouped_products},
    {"groupedgemm", KernelFamily::grouped_products},
    {"group_gemm", KernelFamily::grouped_products},
    {"groupproblemshape", KernelFamily::grouped_products},
    {"m_grouped", KernelFamily::grouped_products},
    {"chunk_gated_delta", KernelFamily::scans},
    {"chunk_state", KernelFamily::scans},
    {"chunk_scan", KernelFamily::scans},
    {"state_passing", KernelFamily::scans},
    {"selective_scan", KernelFamily::scans},
    {"flash", KernelFamily::attention},
    {"fmha", KernelFamily::attention},
    {"sdpa", KernelFamily::attention},
    {"attention", KernelFamily::attention},
    {"attn", KernelFamily::attention},
    {"mla::", KernelFamily::attention},
    {"layer_norm", KernelFamily::norms},
    {"layernorm", KernelFamily::norms},
    {"rmsnorm", KernelFamily::norms},
    {"rms_norm", KernelFamily::norms},
    {"::normalization::", KernelFamily::norms},
    {"ln_fwd", KernelFamily::norms},
    {"ln_bwd", KernelFamily::norms},
    {"gemm", KernelFamily::products},
    {"gemv", KernelFamily::products},
    {"matmul", KernelFamily::products},
    {"cijk_", KernelFamily::products},  // Tensile
    {"nvjet", KernelFamily::products},
    {"splitkreduce", KernelFamily::products},
};

struct OperationName {
  std::string_view part;
  OpKind op;
};

/// PyTorch's names of collectives, NCCL's of functions and DeepEP's of kernels, in lower case and without underscores.
constexpr OperationName collective_names[] = {
    {"allreduce", OpKind::all_reduce}, {"barrier", OpKind::barrier},
    {"allgather", OpKind::all_gather}, {"reducescatter", OpKind::reduce_scatter},
    {"alltoall", OpKind::all_to_all},  {"broadcast", OpKind::broadcast},
    {"gather", OpKind::gather},        {"scatter", OpKind::scatter},
    {"sendrecv", OpKind::send},        {"send", OpKind::send},
    {"recv", OpKind::receive},         {"reduce", OpKind::reduce},
    {"dispatch", OpKind::all_to_all},  {"combine", OpKind::all_to_all},
};

/// What a DAG's operations are whose class does not tell.
KernelFamily family_of_memory_operation(std::string_view name) {
  if (name.find("norm") != std::string_view::npos) return KernelFamily::norms;
  if (name == "copy" || name == "fill") return KernelFamily::copies;
  if (name.starts_with("attention")) return KernelFamily::attention;
  return KernelFamily::others;
}

KernelFamily family_of_operation(OpKind op) {
  const Operation& about = operation(op);
  switch (about.op_class) {
    case OpClass::communication:
      return op == OpKind::copy ? KernelFamily::copies : KernelFamily::communication;
    case OpClass::gemm:
      return about.name.starts_with("grouped") ? KernelFamily::grouped_products : KernelFamily::products;
    case OpClass::attention_forward:
    case OpClass::attention_backward:
      return KernelFamily::attention;
    case OpClass::scan:
      return KernelFamily::scans;
    case OpClass::memory:
      break;
  }
  return family_of_memory_operation(about.name);
}

std::optional<OpKind> operation_named(std::string_view name) {
  for (std::size_t i = 0; i < op_kind_count; ++i)
    if (operation(static_cast<OpKind>(i)).name == name) return static_cast<OpKind>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(KernelFamily family) {
  constexpr std::array<std::string_view, kernel_family_count> names{
      "matrix products", "grouped products", "attention", "norms",        "scans",
      "optimizer",       "other kernels",    "copies",    "communication"};
  return names[static_cast<std::size_t>(family)];
}

KernelFamily family_of(const Task& task) {
  const KernelFamily family = family_of_operation(task.op);
  const bool computes = family != KernelFamily::communication && family != KernelFamily::copies;
  return computes && task.phase == Phase::optimizer ? KernelFamily::optimizer : family;
}

KernelFamily family_of(const RecordedKernel& kernel) {
  if (kernel.collective) return KernelFamily::communication;
  if (kernel.kind != RecordedKernel::Kind::kernel) return KernelFamily::copies;
  if (const auto op = operation_named(kernel.operation)) {
    Task task{.op = *op};
    task.phase = kernel.phase.value_or(Phase::forward);
    return family_of(task);
  }
  const std::string name = lower_case(kernel.name);
  const auto found =
      std::ranges::find_if(family_names, [&](const FamilyName& row) { return name.find(row.part) != std::string::npos; });
  const KernelFamily family = found == std::end(family_names) ? KernelFamily::others : found->family;
  return family != KernelFamily::communication && kernel.phase == Phase::optimizer ? KernelFamily::optimizer : family;
}

std::optional<OpKind> collective_of(const RecordedKernel& kernel) {
  if (const auto op = operation_named(kernel.operation); op && is_communication(*op)) return op;
  if (family_of(kernel) != KernelFamily::communication) return std::nullopt;
  std::string name = lower_case(kernel.collective ? kernel.collective->name : kernel.name.substr(0, kernel.name.find('(')));
  std::erase(name, '_');
  const auto found =
      std::ranges::find_if(collective_names, [&](const OperationName& row) { return name.find(row.part) != std::string::npos; });
  return found == std::end(collective_names) ? std::nullopt : std::optional(found->op);
}

}  // namespace tandem::studies
