#include <stdexcept>

#include "runtime/cuda/module/device.h"
#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/gpu_contents.h"

namespace tandem {
namespace {

struct Constant {
  float value;
  TANDEM_DEVICE float at(std::int64_t) const { return value; }
};

template <typename Element>
struct Elements {
  const Element* from;
  TANDEM_DEVICE float at(std::int64_t i) const { return to_float(from[i]); }
};

template <typename Element, typename Values>
struct Write {
  static constexpr int vector = 1;
  Element* out;
  Values values;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    out[i] = from_float<Element>(values.at(i));
  }
};

template <typename Values>
struct WriteMask {
  static constexpr int vector = 1;
  std::uint8_t* out;
  Values values;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    out[i] = values.at(i) > 0 ? 1 : 0;
  }
};

struct WriteInput {
  static constexpr int vector = 1;
  std::int32_t* out;
  InputValues values;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    out[i] = values.at(i);
  }
};

template <typename Element, typename Values>
void write_as(Queue& queue, const DeviceTensor& tensor, const Stretch& out, const Values& values) {
  launch_elementwise("initial contents", queue, out.count, false,
                     Write<Element, Values>{tensor.as<Element>() + out.begin, values});
}

template <typename Values>
void write_floats(Queue& queue, const DeviceTensor& tensor, const Stretch& out, const Values& values) {
  switch (tensor.dtype) {
    case DType::f32:
      return write_as<float>(queue, tensor, out, values);
    case DType::bf16:
      return write_as<Bf16>(queue, tensor, out, values);
    case DType::f16:
      return write_as<F16>(queue, tensor, out, values);
    case DType::f8:
      return write_as<F8>(queue, tensor, out, values);
    case DType::u8:
      return launch_elementwise("initial contents", queue, out.count, false,
                                WriteMask<Values>{tensor.as<std::uint8_t>() + out.begin, values});
    default:
      throw std::logic_error("initial contents of " + std::string(name_of(tensor.dtype)));
  }
}

}  // namespace

void GpuContentsWriter::write(const Stretch& out, float value) {
  const DeviceTensor tensor = tensor_(out.base);
  if (tensor.data != nullptr) write_floats(queue_, tensor, out, Constant{value});
}

void GpuContentsWriter::write(const Stretch& out, const ShardValues& values) {
  const DeviceTensor tensor = tensor_(out.base);
  if (tensor.data != nullptr) write_floats(queue_, tensor, out, values);
}

void GpuContentsWriter::write(const Stretch& out, const InputValues& values) {
  const DeviceTensor tensor = tensor_(out.base);
  if (tensor.data != nullptr)
    launch_elementwise("inputs", queue_, out.count, false, WriteInput{tensor.as<std::int32_t>() + out.begin, values});
}

void GpuContentsWriter::copy(const Stretch& from, const Stretch& to) {
  const DeviceTensor source = tensor_(from.base), target = tensor_(to.base);
  if (source.data == nullptr || target.data == nullptr) return;
  switch (source.dtype) {
    case DType::f32:
      return write_floats(queue_, target, to, Elements<float>{source.as<float>() + from.begin});
    case DType::bf16:
      return write_floats(queue_, target, to, Elements<Bf16>{source.as<Bf16>() + from.begin});
    case DType::f16:
      return write_floats(queue_, target, to, Elements<F16>{source.as<F16>() + from.begin});
    default:
      throw std::logic_error("initial contents from " + std::string(name_of(source.dtype)));
  }
}

}  // namespace tandem
