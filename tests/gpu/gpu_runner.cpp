#include "tests/gpu/gpu_runner.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "runtime/cuda/module/streams.h"

namespace tandem::studies {
namespace {

constexpr std::size_t guard = 256;
constexpr unsigned char filling = 0xFF;

/// An operand on the GPU, between guards.
class Placed {
 public:
  explicit Placed(const PlacedOperand& operand)
      : begin_(guard + static_cast<std::size_t>(operand.skew * size_of(operand.type.dtype))),
        size_(operand.bytes.size()),
        memory_(begin_ + size_ + guard) {
    check(cudaMemset(memory_.data(), filling, begin_ + size_ + guard), "cudaMemset");
    check(cudaMemcpy(data(), operand.bytes.data(), size_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }

  std::byte* data() const { return memory_.data() + begin_; }

  /// Throws when a guard was written to.
  void read(std::vector<std::byte>& bytes) const {
    std::vector<std::byte> all(begin_ + size_ + guard);
    check(cudaMemcpy(all.data(), memory_.data(), all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const auto untouched = [](std::byte byte) { return byte == std::byte{filling}; };
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(begin_), end = begin + static_cast<std::ptrdiff_t>(size_);
    if (!std::all_of(all.begin(), begin, untouched) || !std::all_of(end, all.end(), untouched))
      throw std::runtime_error("wrote beside an operand");
    bytes.assign(begin, end);
  }

 private:
  std::size_t begin_, size_;
  GpuMemory memory_;
};

}  // namespace

std::string no_gpu_reason() {
  int gpus = 0;
  const cudaError_t error = cudaGetDeviceCount(&gpus);
  cudaGetLastError();
  if (error != cudaSuccess) return cudaGetErrorString(error);
  return gpus == 0 ? "no GPU" : "";
}

void GpuRunner::run(OpKind kind, const OpAttributes& attributes, std::span<PlacedOperand> operands) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::vector<Placed> placed;
  std::vector<OperandType> types;
  std::vector<DeviceTensor> tensors;
  const GpuMemory scales(operands.size() * guard);
  const auto scale_of = [&](std::size_t i) { return reinterpret_cast<float*>(scales.data() + i * guard); };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const PlacedOperand& operand = operands[i];
    placed.emplace_back(operand);
    check(cudaMemcpy(scale_of(i), &operand.scale, sizeof(float), cudaMemcpyHostToDevice), "cudaMemcpy");
    void* const data = operand.same_as < 0 ? placed.back().data() : tensors[static_cast<std::size_t>(operand.same_as)].data;
    types.push_back(operand.type);
    tensors.push_back({data, operand.type.shape, operand.type.dtype, operand.type.dtype == DType::f8 ? scale_of(i) : nullptr});
  }
  const DeviceOperation& on_gpu = device_operation(kind);
  OwnedQueue queue(properties.multiProcessorCount, on_gpu.scratch == nullptr ? 0 : on_gpu.scratch(types, attributes));
  check(cudaDeviceSynchronize(), "the operands");  // copies of pageable memory go on, and the queue waits for none of them
  if (on_gpu.prepare != nullptr) on_gpu.prepare(queue.get(), types, attributes);
  on_gpu.kernel(queue.get(), tensors, attributes);
  check(cudaStreamSynchronize(queue.get().stream), "the kernel");

  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::size_t at = operands[i].same_as < 0 ? i : static_cast<std::size_t>(operands[i].same_as);
    placed[at].read(operands[i].bytes);
    check(cudaMemcpy(&operands[i].scale, scale_of(i), sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
  }
}

}  // namespace tandem::studies
