#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "studies/validate/validation.h"

namespace tandem::studies {
namespace {

/// With as many digits as it takes to read it back; blank where there is none.
std::string cell(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

struct ScoredColumn {
  const char* name;
  std::string (*of)(const ValidatedRow& row);
};

std::optional<double> of_prediction(const ValidatedRow& row, double (*value)(const Prediction&)) {
  return row.prediction ? std::optional(value(*row.prediction)) : std::nullopt;
}

std::string gibibytes(const ValidatedRow& row, Bytes (*figure)(const DeviceMemory& memory)) {
  if (!row.prediction || !row.prediction->typical.step.device_memory) return "";
  constexpr double gibi = 1024.0 * 1024.0 * 1024.0;
  return cell(static_cast<double>(figure(*row.prediction->typical.step.device_memory)) / gibi);
}

constexpr ScoredColumn scored_columns[] = {
    {"measured_step_time_s", [](const ValidatedRow& row) { return cell(row.measured); }},
    {"predicted_step_time_s",
     [](const ValidatedRow& row) { return cell(of_prediction(row, [](const Prediction& p) { return p.step_time; })); }},
    {"low_s",
     [](const ValidatedRow& row) { return cell(of_prediction(row, [](const Prediction& p) { return p.interval.low; })); }},
    {"high_s",
     [](const ValidatedRow& row) { return cell(of_prediction(row, [](const Prediction& p) { return p.interval.high; })); }},
    {"expected_error",
     [](const ValidatedRow& row) { return cell(of_prediction(row, [](const Prediction& p) { return total(p.expected); })); }},
    {"error", [](const ValidatedRow& row) { return cell(row.error()); }},
    {"predicted_tokens_per_s_per_gpu",
     [](const ValidatedRow& row) {
       return row.prediction ? cell(row.tokens_per_gpu / row.prediction->step_time) : std::string();
     }},
    {"predicted_memory_gb",
     [](const ValidatedRow& row) {
       return cell(
           of_prediction(row, [](const Prediction& p) { return static_cast<double>(p.typical.step.peak_memory()) / 1e9; }));
     }},
    {"predicted_allocated_gib",
     [](const ValidatedRow& row) { return gibibytes(row, [](const DeviceMemory& m) { return m.allocated; }); }},
    {"predicted_reserved_gib",
     [](const ValidatedRow& row) { return gibibytes(row, [](const DeviceMemory& m) { return m.reserved; }); }},
    {"predicted_device_gib",
     [](const ValidatedRow& row) { return gibibytes(row, [](const DeviceMemory& m) { return m.device(); }); }},
    {"note", note_of},
};

}  // namespace

std::string to_csv(const Validation& validation, const CsvTable& runs) {
  const auto is_scored = [](const CsvCell& header) {
    return std::ranges::find(scored_columns, header.text, [](const ScoredColumn& column) { return std::string(column.name); }) !=
           std::end(scored_columns);
  };
  std::string out;
  const auto put_line = [&](const std::vector<CsvCell>& cells, const ValidatedRow* row) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (!is_scored(runs.header[i])) line += csv_field(cells[i].text) + ",";
    for (const ScoredColumn& column : scored_columns) line += csv_field(row == nullptr ? column.name : column.of(*row)) + ",";
    line.back() = '\n';
    out += line;
  };
  put_line(runs.header, nullptr);
  for (std::size_t i = 0; i < runs.rows.size(); ++i) put_line(runs.rows[i], &validation.rows[i]);
  return out;
}

}  // namespace tandem::studies
