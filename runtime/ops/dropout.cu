#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/dropout.h"
#include "runtime/ops/row_walk_device.h"

// Each moves the bytes of its cost; a thread draws the bits of its own elements. On an H200 that was as much arithmetic as the
// time of the bytes allows when a hash served two columns: now it serves four, and a row's key is made once for a thread.
namespace tandem {
namespace {

/// What a thread needs of a row, with a residual where it `adds`.
template <typename Element, bool adds>
struct DropOfRow {
  const DropoutMask& mask;
  std::uint64_t key;
  const Element *x, *past;
  Element* y;
  std::uint8_t* kept;

  template <int n>
  struct Loaded {
    alignas(widest_access) Element x[n], past[adds ? n : 1];
  };

  template <int n>
  TANDEM_DEVICE void load(std::int64_t column, Loaded<n>& loaded) const {
    constexpr int bytes = n * static_cast<int>(sizeof(Element));
    copy_aligned<bytes>(loaded.x, x + column);
    if constexpr (adds) copy_aligned<bytes>(loaded.past, past + column);
  }

  template <int n>
  TANDEM_DEVICE void store(std::int64_t column, const Loaded<n>& loaded) const {
    alignas(widest_access) std::uint8_t bytes[n];
    float values[n];
    bool keeps[n];
    if constexpr (n == 1) {
      keeps[0] = mask.keeps(key, column);
    } else {
#pragma unroll
      for (int j = 0; j < n; j += 4) {
        const std::uint64_t bits = mask.of_four(key, (static_cast<std::uint32_t>(column) + static_cast<unsigned>(j)) / 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) keeps[j + k] = mask.keeps_of(bits, k);
      }
    }
#pragma unroll
    for (int j = 0; j < n; ++j) {
      bytes[j] = keeps[j] ? 1 : 0;
      values[j] = keeps[j] ? mask.factor * to_float(loaded.x[j]) : 0.0F;
      if constexpr (adds) values[j] += to_float(loaded.past[j]);
    }
    tandem::store(y + column, values);
    copy_aligned<n>(kept + column, bytes);
  }
};

template <typename Element, bool adds>
struct Drop {
  static constexpr int vector = vector_of<Element>;
  DropoutMask mask;
  const Element *x, *past;  ///< past: null unless it `adds`
  const std::int32_t* sequences;
  Element* y;
  std::uint8_t* kept;
  std::int64_t columns;

  TANDEM_DEVICE DropOfRow<Element, adds> row(std::int64_t row) const {
    const std::int64_t first = row * columns;
    return {mask,      mask.of_row(static_cast<std::uint32_t>(row), sequences),
            x + first, adds ? past + first : nullptr,
            y + first, kept + first};
  }
};

template <typename Element>
struct DropBackward {
  static constexpr int vector = vector_of<Element>;
  const Element* dy;
  const std::uint8_t* kept;
  Element* dx;
  float factor;

  template <int n>
  TANDEM_DEVICE void at(std::int64_t i) const {
    alignas(widest_access) std::uint8_t bytes[n];
    float values[n];
    load(dy + i, values);
    copy_aligned<n>(bytes, kept + i);
    for (int j = 0; j < n; ++j) values[j] = bytes[j] != 0 ? factor * values[j] : 0.0F;
    store(dx + i, values);
  }
};

void drop(const char* name, const Queue& queue, const DropoutAttributes& attributes, const DeviceTensor& x,
          const DeviceTensor* past, const DeviceTensor& sequences, const DeviceTensor& y, const DeviceTensor& mask) {
  expect_types(
      of_one_type(x, y) && (past == nullptr || of_one_type(x, *past)) && sequences.dtype == DType::i32 && mask.dtype == DType::u8,
      "dropout keeps the type, its mask is of bytes, sequences int32");
  const DropoutMask drawn = mask_of(x.shape, sequences.shape, attributes);
  const std::int64_t columns = columns_of(x.shape);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = columns % vector == 0 && are_aligned({x, y}, vector) && is_aligned(mask, vector) &&
                         (past == nullptr || is_aligned(*past, vector));
    const auto launch_drop = [&]<bool adds>(std::bool_constant<adds>) {
      const Drop<Element, adds> body{drawn,
                                     x.template as<const Element>(),
                                     past != nullptr ? past->template as<const Element>() : nullptr,
                                     sequences.template as<const std::int32_t>(),
                                     y.template as<Element>(),
                                     mask.template as<std::uint8_t>(),
                                     columns};
      launch_row_walk(name, queue, rows_of(x.shape), columns, aligned, body);
    };
    past == nullptr ? launch_drop(std::false_type()) : launch_drop(std::true_type());
  });
}

void drop_backward(OpKind kind, const Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dy, mask, dx] = checked<3>(kind, operands, any);
  expect_types(of_one_type(dy, dx) && mask.dtype == DType::u8, "dropout keeps the type, its mask is of bytes");
  with_type(dy.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const DropBackward<Element> body{dy.template as<const Element>(), mask.template as<const std::uint8_t>(),
                                     dx.template as<Element>(), kept_factor(std::get<DropoutAttributes>(any))};
    launch_elementwise(operation(kind).name.data(), queue, dx.shape.elements(),
                       are_aligned({dy, dx}, vector) && is_aligned(mask, vector), body);
  });
}

}  // namespace

void dropout_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, sequences, y, mask] = checked<4>(OpKind::dropout, operands, any);
  drop("dropout", queue, std::get<DropoutAttributes>(any), x, nullptr, sequences, y, mask);
}

void dropout_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  drop_backward(OpKind::dropout_backward, queue, operands, any);
}

void dropout_add_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, residual, sequences, y, mask] = checked<5>(OpKind::dropout_add, operands, any);
  drop("dropout_add", queue, std::get<DropoutAttributes>(any), x, &residual, sequences, y, mask);
}

void dropout_add_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  drop_backward(OpKind::dropout_add_backward, queue, operands, any);
}

}  // namespace tandem
