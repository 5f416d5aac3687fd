#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/launch.h"
#include "runtime/cuda/module/operands.h"
#include "runtime/ops/attention_device.h"
#include "runtime/ops/softmax.h"

// A warp takes a query's row and goes over it three times to find its probabilities, twice for the gradient; all but the first
// time the row comes from the caches. Reads scores that are seen alone.
namespace tandem {
namespace {

constexpr int warps_of_block = 4;

struct Mask {
  PositionRuns queries, keys;
  AttentionMask by_position;
  PlaceTable query_places, key_places;

  TANDEM_DEVICE bool sees(int sequence, int query, int key) const {
    if (query_places.places == nullptr) return !by_position.causal || by_position.sees(queries.at(query), keys.at(key));
    const DocumentPlace q = query_places.at(sequence, query), k = key_places.at(sequence, key);
    return q.document == k.document && by_position.sees(q.token, k.token);
  }
};

Mask runs_and_mask_of(const Queue& queue, const AttentionAttributes& attributes, std::int64_t sequences) {
  const auto runs = [](const Positions& p) { return PositionRuns{{p.start[0], p.start[1]}, p.length[0]}; };
  Scratch scratch(queue);
  return {runs(attributes.queries), runs(attributes.keys), mask_of(attributes),
          put_places("softmax", queue, scratch, attributes.documents, attributes.queries, sequences),
          put_places("softmax", queue, scratch, attributes.documents, attributes.keys, sequences)};
}

template <typename Element>
__global__ void softmax_kernel(Mask mask, const Element* scores, Element* p, std::int64_t rows, int heads, int queries,
                               int keys) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_block + threadIdx.x / lanes_of_warp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp, query = static_cast<int>(row % queries);
  const auto sequence = static_cast<int>(row / queries / heads);
  const Element* const from = scores + row * keys;
  Element* const to = p + row * keys;
  float largest = -INFINITY, sum = 0;
  for (int key = lane; key < keys; key += lanes_of_warp)
    if (mask.sees(sequence, query, key)) largest = fmaxf(largest, to_float(from[key]));
  largest = warp_max(largest);
  for (int key = lane; key < keys; key += lanes_of_warp)
    if (mask.sees(sequence, query, key)) sum += expf(to_float(from[key]) - largest);
  sum = warp_sum(sum);
  const float normaliser = sum > 0 ? 1 / sum : 0.0F;
  for (int key = lane; key < keys; key += lanes_of_warp)
    to[key] = from_float<Element>(mask.sees(sequence, query, key) ? normaliser * expf(to_float(from[key]) - largest) : 0.0F);
}

template <typename Element>
__global__ void softmax_backward_kernel(const Element* p, const Element* dp, Element* ds, std::int64_t rows, int keys) {
  const std::int64_t row = std::int64_t{blockIdx.x} * warps_of_block + threadIdx.x / lanes_of_warp;
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % lanes_of_warp;
  const Element *const probability = p + row * keys, *const gradient = dp + row * keys;
  float mean = 0;
  for (int key = lane; key < keys; key += lanes_of_warp) mean += to_float(probability[key]) * to_float(gradient[key]);
  mean = warp_sum(mean);
  for (int key = lane; key < keys; key += lanes_of_warp)
    ds[row * keys + key] = from_float<Element>(to_float(probability[key]) * (to_float(gradient[key]) - mean));
}

Grid warp_for_each(std::int64_t rows) {
  return {dim3(blocks_along_x(divide_up(rows, warps_of_block))), dim3(warps_of_block * lanes_of_warp)};
}

}  // namespace

void softmax_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [scores, p] = checked<2>(OpKind::softmax, operands, any);
  expect_types(of_one_type(scores, p), "softmax's operands are of one type");
  with_type(p.dtype, [&, scores = scores, p = p]<typename Element>(Type<Element>) {
    launch("softmax", queue, warp_for_each(rows_of(p.shape)), softmax_kernel<Element>,
           runs_and_mask_of(queue, std::get<AttentionAttributes>(any), p.shape[0]), scores.template as<const Element>(),
           p.template as<Element>(), rows_of(p.shape), static_cast<int>(p.shape[1]), static_cast<int>(p.shape[2]),
           static_cast<int>(p.shape[3]));
  });
}

std::size_t softmax_scratch(std::span<const OperandType> operands, const OpAttributes& any) {
  const Shape& scores = operands[0].shape;
  const Documents& documents = std::get<AttentionAttributes>(any).documents;
  return place_table_scratch(documents, scores[2], scores[0]) + place_table_scratch(documents, scores[3], scores[0]);
}

void softmax_backward_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& any) {
  const auto [p, dp, ds] = checked<3>(OpKind::softmax_backward, operands, any);
  expect_types(of_one_type(p, dp, ds), "softmax's operands are of one type");
  with_type(p.dtype, [&, p = p, dp = dp, ds = ds]<typename Element>(Type<Element>) {
    launch("softmax_backward", queue, warp_for_each(rows_of(p.shape)), softmax_backward_kernel<Element>,
           p.template as<const Element>(), dp.template as<const Element>(), ds.template as<Element>(), rows_of(p.shape),
           static_cast<int>(columns_of(p.shape)));
  });
}

}  // namespace tandem
