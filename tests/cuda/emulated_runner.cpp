#include "tests/cuda/emulated_runner.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "runtime/cuda/module/kernel.h"

namespace tandem::studies {
namespace {

constexpr std::size_t alignment = 256;

/// As much memory as asked for and no more, so that AddressSanitizer sees what goes beyond; else the guards do.
class Memory {
 public:
  Memory(std::size_t bytes, std::size_t skew)
      : begin_(guard + skew),
        size_(bytes),
        all_(static_cast<std::byte*>(::operator new (begin_ + bytes + guard, std::align_val_t{alignment}))) {
    std::memset(all_.get(), filling, begin_ + size_ + guard);
  }

  std::byte* data() const { return all_.get() + begin_; }
  bool guards_hold() const {
    const auto untouched = [](std::byte byte) { return byte == std::byte{filling}; };
    return std::all_of(all_.get(), data(), untouched) && std::all_of(data() + size_, data() + size_ + guard, untouched);
  }

 private:
  static constexpr std::size_t guard = alignment;
  static constexpr unsigned char filling = 0xFF;
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{alignment}); }
  };

  std::size_t begin_, size_;
  std::unique_ptr<std::byte, Delete> all_;
};

}  // namespace

void EmulatedRunner::run(OpKind kind, const OpAttributes& attributes, std::span<PlacedOperand> operands) {
  std::vector<Memory> memory;
  std::vector<OperandType> types;
  std::vector<DeviceTensor> tensors;
  for (PlacedOperand& operand : operands) {
    const auto element = static_cast<std::int64_t>(size_of(operand.type.dtype));
    memory.emplace_back(operand.bytes.size(), static_cast<std::size_t>(operand.skew * element));
    std::memcpy(memory.back().data(), operand.bytes.data(), operand.bytes.size());
    void* const data = operand.same_as < 0 ? memory.back().data() : tensors[static_cast<std::size_t>(operand.same_as)].data;
    types.push_back(operand.type);
    tensors.push_back({data, operand.type.shape, operand.type.dtype, operand.type.dtype == DType::f8 ? &operand.scale : nullptr});
  }
  const DeviceOperation& operation_on_gpu = device_operation(kind);
  const std::size_t scratch_bytes = operation_on_gpu.scratch == nullptr ? 0 : operation_on_gpu.scratch(types, attributes);
  const Memory scratch(scratch_bytes, 0);
  Queue queue{.stream = nullptr, .multiprocessors = 4, .scratch = scratch.data(), .scratch_bytes = scratch_bytes};
  operation_on_gpu.kernel(queue, tensors, attributes);

  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!memory[i].guards_hold()) throw std::runtime_error("wrote beside operand " + std::to_string(i));
    std::memcpy(operands[i].bytes.data(), tensors[i].data, operands[i].bytes.size());
  }
  if (!scratch.guards_hold()) throw std::runtime_error("wrote beside its scratch");
}

}  // namespace tandem::studies
