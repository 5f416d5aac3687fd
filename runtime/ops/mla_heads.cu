#include "runtime/cuda/module/elementwise.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/rotation_device.h"

// All move the bytes of their cost. A block moves one token's heads; a thread n elements at a time, or n and those they are
// paired with where the head turns.
namespace tandem {
namespace {

constexpr int threads_of_token = 256;

struct Sizes {
  std::int64_t tokens;
  int batch, heads, nope, rope, value;  ///< the widths of a head's parts in elements

  Sizes(const Shape& qk, const MlaHeadsAttributes& attributes, const Shape* v = nullptr)
      : tokens(qk[0] * qk[1]),
        batch(static_cast<int>(qk[1])),
        heads(static_cast<int>(qk[2])),
        nope(static_cast<int>(qk[3]) - attributes.rope_dim),
        rope(attributes.rope_dim),
        value(v == nullptr ? 0 : static_cast<int>((*v)[3])) {}

  bool divide_into(int vector) const { return nope % vector == 0 && rope / 2 % vector == 0 && value % vector == 0; }
};

/// `rows` runs of `length` elements from one side to the other, by the threads of a block.
template <int n, typename Element>
TANDEM_DEVICE void copy_runs(const Element* from, int from_stride, Element* to, int to_stride, int rows, int length) {
  constexpr int at_once = 4, bytes = n * static_cast<int>(sizeof(Element));
  const int per_row = length / n, all = rows * per_row;
  alignas(widest_access) Element raw[at_once][n];  // all under way before the first is stored
  for (int first = static_cast<int>(threadIdx.x); first < all; first += at_once * threads_of_token) {
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      const int i = first + k * threads_of_token, row = i / per_row;
      if (i < all) copy_aligned<bytes>(raw[k], from + row * from_stride + (i - row * per_row) * n);
    }
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      const int i = first + k * threads_of_token, row = i / per_row;
      if (i < all) copy_aligned<bytes>(to + row * to_stride + (i - row * per_row) * n, raw[k]);
    }
  }
}

template <int n, typename Element>
TANDEM_DEVICE void turn_runs(const Element* from, int from_stride, Element* to, int to_stride, int rows, int half,
                             const float* cos_of, const float* sin_of) {
  const int per_row = half / n;
  for (int i = static_cast<int>(threadIdx.x); i < rows * per_row; i += threads_of_token) {
    const int row = i / per_row, first = i % per_row * n;
    float low[n], high[n];
    load(from + row * from_stride + first, low);
    load(from + row * from_stride + first + half, high);
    turn(low, high, cos_of + first, sin_of + first);
    store(to + row * to_stride + first, low);
    store(to + row * to_stride + first + half, high);
  }
}

template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    queries_kernel(const Element* in, Element* out, Sizes size, RotationTable rotation) {
  TANDEM_SHARED(float, cos_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sin_of, RotationTable::most_pairs);
  rotation.compute(blockIdx.x, size.batch, cos_of, sin_of);
  __syncthreads();
  const int width = size.nope + size.rope;
  const std::int64_t first = std::int64_t{blockIdx.x} * size.heads * width;
  copy_runs<n>(in + first, width, out + first, width, size.heads, size.nope);
  turn_runs<n>(in + first + size.nope, width, out + first + size.nope, width, size.heads, size.rope / 2, cos_of, sin_of);
}

template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    keys_values_kernel(const Element* x, const Element* rope, Element* k, Element* v, Sizes size, RotationTable rotation) {
  TANDEM_SHARED(float, cos_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sin_of, RotationTable::most_pairs);
  rotation.compute(blockIdx.x, size.batch, cos_of, sin_of);
  __syncthreads();
  const int of_x = size.nope + size.value, of_key = size.nope + size.rope;
  const std::int64_t first_head = std::int64_t{blockIdx.x} * size.heads;
  const Element* const heads = x + first_head * of_x;
  Element* const keys = k + first_head * of_key;
  copy_runs<n>(heads, of_x, keys, of_key, size.heads, size.nope);
  copy_runs<n>(heads + size.nope, of_x, v + first_head * size.value, size.value, size.heads, size.value);
  turn_runs<n>(rope + std::int64_t{blockIdx.x} * size.rope, 0, keys + size.nope, of_key, size.heads, size.rope / 2, cos_of,
               sin_of);
}

template <int n, typename Element>
__global__ void __launch_bounds__(threads_of_token)
    keys_values_backward_kernel(const Element* dk, const Element* dv, Element* dx, Element* drope, Sizes size,
                                RotationTable rotation) {
  TANDEM_SHARED(float, cos_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sin_of, RotationTable::most_pairs);
  TANDEM_SHARED(float, sums, 2 * RotationTable::most_pairs);
  rotation.compute(blockIdx.x, size.batch, cos_of, sin_of);
  const int of_x = size.nope + size.value, of_key = size.nope + size.rope, half = size.rope / 2;
  const std::int64_t first_head = std::int64_t{blockIdx.x} * size.heads;
  const Element* const keys = dk + first_head * of_key;
  Element* const heads = dx + first_head * of_x;
  copy_runs<n>(keys, of_key, heads, of_x, size.heads, size.nope);
  copy_runs<n>(dv + first_head * size.value, size.value, heads + size.nope, of_x, size.heads, size.value);
  // Several threads sum the heads of one element: as many as there are for each.
  const int of_element = size.rope > 0 && size.rope < threads_of_token ? threads_of_token / size.rope : 1;
  for (int i = static_cast<int>(threadIdx.x); i < of_element * size.rope; i += threads_of_token) {
    const int group = i / size.rope, element = i - group * size.rope;
    float sum = 0;
#pragma unroll 8
    for (int head = group; head < size.heads; head += of_element) sum += to_float(keys[head * of_key + size.nope + element]);
    sums[i] = sum;
  }
  __syncthreads();
  Element* const to = drope + std::int64_t{blockIdx.x} * size.rope;
  for (int i = static_cast<int>(threadIdx.x); i < half; i += threads_of_token) {
    float low[1] = {}, high[1] = {};
    for (int group = 0; group < of_element; ++group) {
      low[0] += sums[group * size.rope + i];
      high[0] += sums[group * size.rope + i + half];
    }
    turn(low, high, cos_of + i, sin_of + i);
    store(to + i, low);
    store(to + i + half, high);
  }
}

RotationTable rotation_of(const char* name, const Queue& queue, const MlaHeadsAttributes& attributes, std::int64_t batch,
                          Direction direction) {
  RotationTable rotation(attributes.rope_dim, attributes.base, attributes.positions, direction, attributes.yarn);
  for (double& frequency : rotation.frequencies) frequency *= attributes.stride;
  Scratch scratch(queue);
  rotation.places = put_places(name, queue, scratch, attributes.documents, attributes.positions, batch);
  return rotation;
}

void turn_queries(const char* name, const Queue& queue, const DeviceTensor& in, const DeviceTensor& out, const Shape& q,
                  const MlaHeadsAttributes& attributes, Direction direction) {
  expect_types(of_one_type(in, out), "heads are of one type");
  const Sizes size(q, attributes);
  const RotationTable rotation = rotation_of(name, queue, attributes, q[1], direction);
  with_type(in.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = size.divide_into(vector) && are_aligned({in, out}, vector);
    launch(name, queue, {dim3(blocks_along_x(size.tokens)), dim3(threads_of_token)},
           aligned ? queries_kernel<vector, Element> : queries_kernel<1, Element>, in.as<const Element>(), out.as<Element>(),
           size, rotation);
  });
}

}  // namespace

void mla_queries_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [x, q] = checked<2>(OpKind::mla_queries, operands, any);
  turn_queries("mla_queries", queue, x, q, q.shape, std::get<MlaHeadsAttributes>(any), Direction::forward);
}

void mla_queries_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [dq, dx] = checked<2>(OpKind::mla_queries_backward, operands, any);
  turn_queries("mla_queries_backward", queue, dq, dx, dq.shape, std::get<MlaHeadsAttributes>(any), Direction::backward);
}

void mla_keys_values_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [x, rope, k, v] = checked<4>(OpKind::mla_keys_values, operands, any);
  expect_types(of_one_type(x, rope, k, v), "heads are of one type");
  const Sizes size(k.shape, attributes, &v.shape);
  const RotationTable rotation = rotation_of("mla_keys_values", queue, attributes, k.shape[1], Direction::forward);
  with_type(x.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = size.divide_into(vector) && are_aligned({x, rope, k, v}, vector);
    launch("mla_keys_values", queue, {dim3(blocks_along_x(size.tokens)), dim3(threads_of_token)},
           aligned ? keys_values_kernel<vector, Element> : keys_values_kernel<1, Element>, x.template as<const Element>(),
           rope.template as<const Element>(), k.template as<Element>(), v.template as<Element>(), size, rotation);
  });
}

void mla_keys_values_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  const auto [dk, dv, dx, drope] = checked<4>(OpKind::mla_keys_values_backward, operands, any);
  expect_types(of_one_type(dk, dv, dx, drope), "heads are of one type");
  const Sizes size(dk.shape, attributes, &dv.shape);
  const RotationTable rotation = rotation_of("mla_keys_values_backward", queue, attributes, dk.shape[1], Direction::backward);
  with_type(dk.dtype, [&]<typename Element>(Type<Element>) {
    constexpr int vector = vector_of<Element>;
    const bool aligned = size.divide_into(vector) && are_aligned({dk, dv, dx}, vector);
    launch("mla_keys_values_backward", queue, {dim3(blocks_along_x(size.tokens)), dim3(threads_of_token)},
           aligned ? keys_values_backward_kernel<vector, Element> : keys_values_backward_kernel<1, Element>,
           dk.template as<const Element>(), dv.template as<const Element>(), dx.template as<Element>(),
           drope.template as<Element>(), size, rotation);
  });
}

std::size_t mla_heads_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto& attributes = std::get<MlaHeadsAttributes>(any);
  return place_table_scratch(attributes.documents, attributes.positions.count(), operands[0].shape[1]);
}

}  // namespace tandem
