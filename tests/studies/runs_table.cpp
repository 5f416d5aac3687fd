#include "tests/studies/runs_table.h"

#include <fstream>
#include <set>

namespace tandem::studies {

RunCells tiny_run(const RunCells& changes) {
  RunCells cells = {{"id", "a"},
                    {"source", "ours"},
                    {"gpu", "h100-sxm-80gb"},
                    {"n_gpus", "8"},
                    {"layers", "4"},
                    {"hidden", "256"},
                    {"heads", "4"},
                    {"ffn", "1024"},
                    {"gated", "0"},
                    {"vocab", "1024"},
                    {"sequence", "128"},
                    {"precision", "bf16"},
                    {"tp", "1"},
                    {"pp", "1"},
                    {"zero", "1"},
                    {"micro_batch", "1"},
                    {"recompute", "none"},
                    {"global_batch", "64"},
                    {"step_time_s", "0.01"}};
  for (const auto& [column, text] : changes) cells[column] = text;
  return cells;
}

std::string table_text(const std::vector<RunCells>& runs) {
  std::set<std::string> columns;
  for (const RunCells& run : runs)
    for (const auto& [column, text] : run) columns.insert(column);
  std::string text;
  const auto put_line = [&](const auto& cell_of) {
    std::string line;
    for (const std::string& column : columns) line += csv_field(cell_of(column)) + ",";
    line.back() = '\n';
    text += line;
  };
  put_line([](const std::string& column) { return column; });
  for (const RunCells& run : runs)
    put_line([&](const std::string& column) { return run.contains(column) ? run.at(column) : std::string(); });
  return text;
}

RunsTable::RunsTable(const std::vector<RunCells>& runs) : RunsTable(table_text(runs)) {}

RunsTable::RunsTable(const std::string& text) { std::ofstream(file(), std::ios::binary) << text; }

}  // namespace tandem::studies
