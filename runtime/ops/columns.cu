#include <vector>

#include "runtime/cuda/module/copy_boxes.h"
#include "runtime/cuda/module/kernels.h"
#include "runtime/cuda/module/operands.h"

// Both move the bytes of their cost.
namespace tandem {
namespace {

enum class Direction {
  split,
  join
};

void copy_columns(const char* name, const Queue& queue, const DeviceTensor& whole, std::span<const DeviceTensor> parts,
                  Direction direction) {
  const std::int64_t rows = rows_of(whole.shape), width = columns_of(whole.shape);
  std::vector<Box> boxes;
  std::int64_t first = 0;
  for (const DeviceTensor& part : parts) {
    const std::int64_t columns = columns_of(part.shape);
    const BoxSide in_whole{first, {0, width}}, in_part{0, {0, columns}};
    if (direction == Direction::split)
      boxes.push_back({&whole, &part, {1, rows, columns}, in_whole, in_part});
    else
      boxes.push_back({&part, &whole, {1, rows, columns}, in_part, in_whole});
    first += columns;
  }
  copy_boxes(name, queue, boxes);
}

}  // namespace

void split_columns_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  check_shapes(OpKind::split_columns, operands, attributes);
  copy_columns("split_columns", queue, operands.front(), operands.subspan(1), Direction::split);
}

void join_columns_device(Queue& queue, std::span<const DeviceTensor> operands, const OpAttributes& attributes) {
  check_shapes(OpKind::join_columns, operands, attributes);
  copy_columns("join_columns", queue, operands.back(), operands.first(operands.size() - 1), Direction::join);
}

}  // namespace tandem
