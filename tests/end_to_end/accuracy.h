#pragma once

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace tandem::studies {

using MeasuredRow = std::map<std::string, std::string>;

/// Of a table in bench/accuracy/data, whose fields hold no quotes.
inline std::vector<MeasuredRow> measured_rows(const std::string& name) {
  std::ifstream file(TANDEM_SOURCE_DIR "/bench/accuracy/data/" + name);
  std::vector<std::string> header;
  std::vector<MeasuredRow> rows;
  for (std::string line, field; std::getline(file, line);) {
    std::vector<std::string> fields;
    for (std::istringstream in(line); std::getline(in, field, ',');) fields.push_back(field);
    if (header.empty()) {
      header = fields;
      continue;
    }
    MeasuredRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < header.size(); ++i) row[header[i]] = fields.at(i);
  }
  return rows;
}

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

inline std::string file_in_accuracy(const std::string& name) {
  std::ifstream file(TANDEM_SOURCE_DIR "/bench/accuracy/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace tandem::studies
