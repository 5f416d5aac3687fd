#include "scenarios/lowering/shards.h"

#include <algorithm>

namespace tandem::scenarios {

void add_shards(DagBuilder& builder, const ResidentPart& resident, const ParameterPiece& piece, std::int64_t offset,
                bool frozen) {
  const std::int64_t width = piece.columns;
  std::int64_t at = std::max<std::int64_t>(resident.begin - offset, 0);  // an element of the piece, row by row
  const std::int64_t end = std::min(resident.end - offset, piece.rows * width);
  while (at < end) {
    const std::int64_t column = at % width;
    const bool whole_rows = column == 0 && end - at >= width;
    const std::int64_t rows = whole_rows ? (end - at) / width : 1;
    const std::int64_t columns = whole_rows ? width : std::min(width - column, end - at);
    const BufferId block = builder.view(resident.buffer, offset + at - resident.begin, Shape(rows, columns));
    builder.dag().shards.push_back({block, piece.tensor, piece.tensor_rows, piece.tensor_columns, piece.row + at / width,
                                    piece.column + column, rows, columns, frozen});
    at += rows * columns;
  }
}

}  // namespace tandem::scenarios
