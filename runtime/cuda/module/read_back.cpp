#include "runtime/cuda/module/read_back.h"

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <bit>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/gpu_memory.h"
#include "runtime/cuda/module/virtual_collective.h"

namespace tandem {

void read_back(const DeviceTensor& from, const HostTensor& out) {
  const auto elements = static_cast<std::size_t>(from.shape.elements());
  std::vector<std::byte> bytes(elements * static_cast<std::size_t>(size_of(from.dtype)));
  check(cudaMemcpy(bytes.data(), from.data, bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
  float scale = 1;
  if (from.scale != nullptr) check(cudaMemcpy(&scale, from.scale, sizeof scale, cudaMemcpyDeviceToHost), "cudaMemcpy");
  const auto raw = [&](auto element, std::size_t i) {
    std::memcpy(&element, bytes.data() + i * sizeof element, sizeof element);
    return element;
  };
  for (std::size_t i = 0; i < elements; ++i) {
    switch (from.dtype) {
      case DType::i32:
        out.i32()[i] = raw(std::int32_t{}, i);
        break;
      case DType::f32:
        out.f32()[i] = raw(float{}, i);
        break;
      case DType::bf16:
        out.f32()[i] = std::bit_cast<float>(static_cast<std::uint32_t>(raw(std::uint16_t{}, i)) << 16);
        break;
      case DType::f16:
        out.f32()[i] = __half2float(raw(__half{}, i));
        break;
      case DType::u8:
        out.f32()[i] = static_cast<float>(raw(std::uint8_t{}, i));
        break;
      case DType::f8:
        out.f32()[i] = scale * static_cast<float>(raw(__nv_fp8_e4m3{}, i));
        break;
      case DType::f4:
        throw std::logic_error("nothing in fp4 is read back");
    }
  }
}

void run_on_copies(Queue& queue, const Collective& collective) {
  Collective on_gpu = collective;
  std::vector<GpuMemory> memory;
  std::vector<std::pair<std::span<float>, float*>> outputs;
  // A shard may lie in its place of the whole: what overlaps is one block here, too.
  const auto moved = [&](std::span<float>& span, std::span<float> other, float* other_moved) {
    if (span.empty()) return;
    float* to = nullptr;
    const std::less_equal<const float*> not_after;
    if (other_moved != nullptr && not_after(other.data(), span.data()) &&
        not_after(span.data() + span.size(), other.data() + other.size())) {
      to = other_moved + (span.data() - other.data());
    } else {
      memory.emplace_back(span.size_bytes());
      to = reinterpret_cast<float*>(memory.back().data());
      // In the queue: a copy outside of it may still be under way when a stream that waits for nobody reads.
      check(cudaMemcpyAsync(to, span.data(), span.size_bytes(), cudaMemcpyHostToDevice, queue.stream), "cudaMemcpyAsync");
    }
    span = {to, span.size()};
  };
  for (std::size_t m = 0; m < on_gpu.members.size(); ++m) {
    const CollectiveMember& host = collective.members[m];
    CollectiveMember& member = on_gpu.members[m];
    const bool in_is_larger = host.in.size() >= host.out.size();
    std::span<float>&larger = in_is_larger ? member.in : member.out, &smaller = in_is_larger ? member.out : member.in;
    const std::span<float> larger_on_host = larger;
    moved(larger, {}, nullptr);
    moved(smaller, larger_on_host, larger.data());
    if (!host.out.empty()) outputs.emplace_back(host.out, member.out.data());
  }
  run_virtual_collective(queue, on_gpu, DType::f32);
  check(cudaStreamSynchronize(queue.stream), "a collective");
  for (const auto& [to, from] : outputs)
    check(cudaMemcpy(to.data(), from, to.size_bytes(), cudaMemcpyDeviceToHost), "cudaMemcpy");
}

}  // namespace tandem
