#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Both move the bytes of their cost.
namespace tandem {
namespace {

/// From [outer, inner, width] of `from` to [inner, outer, width] of `to`.
void swap_first_dimensions(const char* name, const Queue& queue, const DeviceTensor& from, const DeviceTensor& to,
                           std::int64_t outer, std::int64_t inner) {
  const std::int64_t width = from.shape.elements() / (outer * inner);
  const Box box{&from, &to, {outer, inner, width}, {0, {inner * width, width}}, {0, {width, outer * width}}};
  copy_boxes(name, queue, {&box, 1});
}

}  // namespace

void pack_groups_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [x, y] = checked<2>(OpKind::pack_groups, operands, attributes);
  swap_first_dimensions("pack_groups", queue, x, y, x.shape[0] * x.shape[1], std::get<GroupsAttributes>(attributes).groups);
}

void unpack_groups_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  const auto [y, x] = checked<2>(OpKind::unpack_groups, operands, attributes);
  swap_first_dimensions("unpack_groups", queue, y, x, std::get<GroupsAttributes>(attributes).groups, x.shape[0] * x.shape[1]);
}

}  // namespace tandem
