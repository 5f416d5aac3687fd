#include <string>

#include "runtime/cuda/module/convert.h"
#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/launch.h"

namespace tandem {
namespace {

constexpr int threads = 256, per_thread = 8;

template <typename From, typename To>
__global__ void convert_kernel(const From* from, const float* scale, To* to, std::int64_t count, bool accumulate) {
  const float factor = scale == nullptr ? 1.0F : *scale;
  const std::int64_t first = (std::int64_t{blockIdx.x} * threads + threadIdx.x) * per_thread;
  const auto value_at = [&](std::int64_t i, float value) { return factor * value + (accumulate ? to_float(to[i]) : 0.0F); };
  if (first + per_thread <= count) {
    float values[per_thread];
    load(from + first, values);
#pragma unroll
    for (int i = 0; i < per_thread; ++i) values[i] = value_at(first + i, values[i]);
    store(to + first, values);
    return;
  }
  for (std::int64_t i = first; i < count; ++i) to[i] = from_float<To>(value_at(i, to_float(from[i])));
}

template <typename From, typename To>
void convert_typed(const Queue& queue, const DeviceTensor& from, const DeviceTensor& to, bool accumulate) {
  const std::int64_t count = from.shape.elements();
  launch("convert", queue, {blocks_along_x(parts_of(count, threads * per_thread)), threads}, convert_kernel<From, To>,
         from.as<From>(), from.scale, to.as<To>(), count, accumulate);
}

template <typename From>
void convert_from(const Queue& queue, const DeviceTensor& from, const DeviceTensor& to, bool accumulate) {
  switch (to.dtype) {
    case DType::f32:
      return convert_typed<From, float>(queue, from, to, accumulate);
    case DType::bf16:
      return convert_typed<From, Bf16>(queue, from, to, accumulate);
    case DType::f16:
      return convert_typed<From, F16>(queue, from, to, accumulate);
    case DType::f8:
    case DType::i32:
      break;
  }
  throw std::logic_error("nothing is converted into " + std::string(name_of(to.dtype)));
}

}  // namespace

void convert(const Queue& queue, const DeviceTensor& from, const DeviceTensor& to, bool accumulate) {
  switch (from.dtype) {
    case DType::f32:
      return convert_from<float>(queue, from, to, accumulate);
    case DType::bf16:
      return convert_from<Bf16>(queue, from, to, accumulate);
    case DType::f16:
      return convert_from<F16>(queue, from, to, accumulate);
    case DType::f8:
      return convert_from<F8>(queue, from, to, accumulate);
    case DType::i32:
      break;
  }
  throw std::logic_error("nothing is converted from " + std::string(name_of(from.dtype)));
}

}  // namespace tandem
