#pragma once

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/base/csv.h"

namespace tandem::studies {

using MeasuredRow = std::map<std::string, std::string>;

inline std::string file_in_accuracy(const std::string& name) {
  std::ifstream file(TANDEM_SOURCE_DIR "/bench/accuracy/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Of a table in bench/accuracy.
inline std::vector<MeasuredRow> rows_in_accuracy(const std::string& name) {
  const CsvTable table = parse_csv(file_in_accuracy(name), name);
  std::vector<MeasuredRow> rows;
  for (const std::vector<CsvCell>& cells : table.rows) {
    MeasuredRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row[table.header[i].text] = cells[i].text;
  }
  return rows;
}

/// Of a table in bench/accuracy/data.
inline std::vector<MeasuredRow> measured_rows(const std::string& name) { return rows_in_accuracy("data/" + name); }

struct Errors {
  std::vector<double> all;  ///< predicted / measured - 1

  /// Of their sizes, in per cent.
  double quantile(double part) const {
    std::vector<double> sizes;
    for (const double error : all) sizes.push_back(100 * std::abs(error));
    std::ranges::sort(sizes);
    const double place = part * static_cast<double>(sizes.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const double above = sizes[std::min(below + 1, sizes.size() - 1)];
    return sizes[below] + (place - static_cast<double>(below)) * (above - sizes[below]);
  }
  double bias() const {
    std::vector<double> sorted = all;
    std::ranges::sort(sorted);
    return std::round(1000 * sorted[sorted.size() / 2]) / 10 + 0.0;  // no -0.0
  }
};

/// By table, whose name is the first columns: number of rows, median and 90th percentile of the errors' sizes, and their median.
inline std::string error_table(const std::string& columns, const std::map<std::string, Errors>& errors) {
  std::string text = columns + ",rows,median_percent,p90_percent,bias_percent\n";
  for (const auto& [table, of_table] : errors)
    text += fmt::format("{},{},{:.1f},{:.1f},{:+.1f}\n", table, of_table.all.size(), of_table.quantile(0.5),
                        of_table.quantile(0.9), of_table.bias());
  return text;
}

/// Holds `now` to `was`. Where it changed, leaves it in the folder for temporary files, whence the bench takes it.
inline void expect_unchanged(const std::string& now, const std::string& was, const std::string& name) {
  if (now != was) std::ofstream(testing::TempDir() + name) << now;
  EXPECT_EQ(now, was) << name << " has changed; `./dev bench accuracy` renews it";
}

}  // namespace tandem::studies
