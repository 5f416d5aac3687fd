#pragma once

#include <cstring>
#include <memory>
#include <new>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/kernel.h"
#include "runtime/ops/operands.h"
#include "tests/runtime/ops_support.h"

namespace tandem {

/// A host tensor as a GPU would hold it. The host's values are rounded to the type, so that both compute with the same numbers.
class DeviceOperand {
 public:
  /// `stored_transposed`: a matrix [rows][columns] lies as [columns][rows].
  DeviceOperand(Tensor& tensor, DType type, bool stored_transposed = false)
      : shape_(tensor.shape),
        type_(type),
        stored_transposed_(stored_transposed),
        bytes_(static_cast<std::byte*>(::operator new(static_cast<std::size_t>(OperandType{shape_, type}.bytes()), alignment))) {
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      store_at(place_of(i), tensor[i]);
      tensor[i] = load_at(place_of(i));
    }
  }

  DeviceTensor device() { return {bytes_.get(), shape_, type_, type_ == DType::f8 ? &scale_ : nullptr}; }
  OperandType type() const { return {shape_, type_}; }

  Tensor values() const {
    Tensor result(shape_);
    for (std::int64_t i = 0; i < result.size(); ++i) result[i] = load_at(place_of(i));
    return result;
  }

 private:
  static constexpr std::align_val_t alignment{256};
  struct Deleter {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
  };

  std::int64_t place_of(std::int64_t i) const {
    const std::int64_t columns = columns_of(shape_);
    return stored_transposed_ ? i % columns * rows_of(shape_) + i / columns : i;
  }

  template <typename Use>
  void with_type(Use use) const {
    if (type_ == DType::f32) use(float{});
    if (type_ == DType::bf16) use(Bf16{});
    if (type_ == DType::f16) use(F16{});
    if (type_ == DType::f8) use(F8{});
  }
  void store_at(std::int64_t place, float value) {
    with_type([&]<typename Element>(Element) {
      reinterpret_cast<Element*>(bytes_.get())[place] = from_float<Element>(type_ == DType::f8 ? value / scale_ : value);
    });
  }
  float load_at(std::int64_t place) const {
    float value = 0;
    with_type([&]<typename Element>(Element) { value = to_float(reinterpret_cast<const Element*>(bytes_.get())[place]); });
    return type_ == DType::f8 ? value * scale_ : value;
  }

  Shape shape_;
  DType type_;
  bool stored_transposed_;
  float scale_ = 0.3F;
  std::unique_ptr<std::byte, Deleter> bytes_;
};

/// A queue with as much scratch as the operation asks for, of which the end is filled with NaN: what comes before is cuBLASLt's.
class TestQueue {
 public:
  TestQueue(OpKind kind, std::span<const OperandType> operands, const OpAttributes& attributes) {
    const DeviceOperation& operation = device_operation(kind);
    const std::size_t bytes = operation.scratch == nullptr ? 0 : operation.scratch(operands, attributes);
    scratch_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
    const std::size_t filled = std::min(bytes, std::size_t{1} << 20U);
    std::memset(scratch_.get() + bytes - filled, 0xFF, filled);
    queue.scratch = scratch_.get();
    queue.scratch_bytes = bytes;
  }

  Queue queue;

 private:
  static constexpr std::align_val_t alignment{256};
  struct Deleter {
    void operator()(std::byte* bytes) const { ::operator delete(bytes, alignment); }
  };
  std::unique_ptr<std::byte, Deleter> scratch_;
};

inline void run_on_device(OpKind kind, const OpAttributes& attributes, std::initializer_list<DeviceOperand*> operands) {
  std::vector<OperandType> types;
  std::vector<DeviceTensor> tensors;
  for (DeviceOperand* operand : operands) {
    types.push_back(operand->type());
    tensors.push_back(operand->device());
  }
  TestQueue queue(kind, types, attributes);
  device_operation(kind).kernel(queue.queue, tensors, attributes);
}

}  // namespace tandem
