#include "studies/report/study_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "studies/report/page.h"

namespace tandem::studies {
namespace {

using Json = nlohmann::ordered_json;

Json value_of(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell)) return *whole;
  if (const auto* number = std::get_if<double>(&cell)) return *number;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

/// In the order in which the points bring them, numbers ascending.
Json parameters_of(const std::vector<PointRow>& rows) {
  std::vector<std::pair<std::string, std::vector<Json>>> parameters;
  for (const PointRow& row : rows) {
    for (const NamedCell& value : row.values) {
      auto parameter = std::ranges::find(parameters, value.name, &std::pair<std::string, std::vector<Json>>::first);
      if (parameter == parameters.end()) parameter = parameters.insert(parameter, {value.name, {}});
      Json json = value_of(value.cell);
      if (std::ranges::find(parameter->second, json) == parameter->second.end()) parameter->second.push_back(std::move(json));
    }
  }
  Json list = Json::array();
  for (auto& [name, values] : parameters) {
    if (std::ranges::all_of(values, [](const Json& value) { return value.is_number(); })) std::ranges::sort(values);
    list.push_back({{"name", name}, {"values", values}});
  }
  return list;
}

Json point_of(const PointRow& row) {
  Json values = Json::object();
  for (const NamedCell& value : row.values) values[value.name] = value_of(value.cell);
  return {{"parameters", values},
          {"status", name_of(row.status)},
          {"sentence", row.message},
          {"result", row.json.empty() ? Json() : Json::parse(row.json)}};
}

}  // namespace

std::string study_page(const std::string& name, const std::vector<PointRow>& rows, const std::string& command) {
  Json report = report_head("study", name, command);
  report["parameters"] = parameters_of(rows);
  report["points"] = Json::array();
  for (const PointRow& row : rows) report["points"].push_back(point_of(row));
  return report_page(report);
}

}  // namespace tandem::studies
