#include "runtime/ops/groups.h"

#include <algorithm>

#include "runtime/ops/operands.h"

namespace tandem {
namespace {

struct GroupSizes {
  std::int64_t groups, rows, width;

  GroupSizes(const Shape& in_rows, const Shape& in_groups, const OpAttributes& any)
      : groups(std::get<GroupsAttributes>(any).groups), rows(in_rows[0] * in_rows[1]), width(in_rows[2] * in_rows[3] / groups) {
    expect_shapes(in_rows[2] % groups == 0, "a row of heads divides into the groups");
    expect_shapes(in_rows.elements() == in_groups.elements(), "packing keeps the number of elements");
  }
};

}  // namespace

OpCost pack_groups_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "pack_groups");
  GroupSizes(x.shape, y.shape, any);
  return memory_cost(bytes_of(x, y));
}

void pack_groups_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [x, y] = unpack<2>(operands, "pack_groups");
  const GroupSizes n(x.shape, y.shape, any);
  for (std::int64_t row = 0; row < n.rows; ++row)
    for (std::int64_t group = 0; group < n.groups; ++group)
      std::copy_n(x.f32() + (row * n.groups + group) * n.width, n.width, y.f32() + (group * n.rows + row) * n.width);
}

OpCost unpack_groups_cost(std::span<const OperandType> operands, const OpAttributes& any) {
  const auto [y, x] = unpack<2>(operands, "unpack_groups");
  GroupSizes(x.shape, y.shape, any);
  return memory_cost(bytes_of(x, y));
}

void unpack_groups_host(std::span<const HostTensor> operands, const OpAttributes& any) {
  const auto [y, x] = unpack<2>(operands, "unpack_groups");
  const GroupSizes n(x.shape, y.shape, any);
  for (std::int64_t row = 0; row < n.rows; ++row)
    for (std::int64_t group = 0; group < n.groups; ++group)
      std::copy_n(y.f32() + (group * n.rows + row) * n.width, n.width, x.f32() + (row * n.groups + group) * n.width);
}

}  // namespace tandem
