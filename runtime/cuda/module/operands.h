#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/kernel.h"
#include "runtime/ops/operands.h"

namespace tandem {

// What kernels' host side shares: checks, and the way from a DType to a C++ type.

/// Checks the shapes by the rule of the operation's cost function, which is that of its host kernel.
inline void check_shapes(OpKind kind, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  std::vector<OperandType> types;
  for (const DeviceTensor& operand : operands) types.push_back({operand.shape, operand.dtype});
  operation(kind).cost(types, attributes);
}

/// Returns the operands as an array to be taken apart by name, after a check of their shapes.
template <std::size_t count>
std::array<DeviceTensor, count> checked(OpKind kind, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto result = unpack<count>(operands, operation(kind).name.data());
  check_shapes(kind, operands, attributes);
  return result;
}

/// Throws std::logic_error unless the types hold to the rule; no lowering breaks it.
inline void expect_types(bool hold, const char* rule) {
  if (!hold) throw std::logic_error(std::string("wrong operand types: ") + rule);
}

template <typename... Tensors>
bool of_one_type(const DeviceTensor& first, const Tensors&... others) {
  return (... && (others.dtype == first.dtype));
}

template <typename ElementT>
struct Type {
  using Element = ElementT;
};

/// Calls `visit(Type<Element>{})` for a type that activations, weights and gradients may have.
template <typename Visit>
void with_type(DType type, Visit visit) {
  switch (type) {
    case DType::f32:
      return visit(Type<float>{});
    case DType::bf16:
      return visit(Type<Bf16>{});
    case DType::f16:
      return visit(Type<F16>{});
    default:
      throw std::logic_error("wrong operand types: " + std::string(name_of(type)) +
                             " where activations or gradients are expected");
  }
}

/// The number of elements that a thread moves at once: 16 bytes of the smallest of the types.
template <typename... Elements>
inline constexpr int vector_of = static_cast<int>(std::max({(widest_access / sizeof(Elements))...}));

/// Returns whether vectors of so many elements can be loaded from a tensor's beginning on.
inline bool is_aligned(const DeviceTensor& tensor, int vector) {
  const auto bytes = std::min<std::uintptr_t>(widest_access, static_cast<std::uintptr_t>(vector * size_of(tensor.dtype)));
  return std::bit_cast<std::uintptr_t>(tensor.data) % bytes == 0;
}
inline bool are_aligned(std::initializer_list<DeviceTensor> tensors, int vector) {
  return std::all_of(tensors.begin(), tensors.end(), [=](const DeviceTensor& tensor) { return is_aligned(tensor, vector); });
}

}  // namespace tandem
