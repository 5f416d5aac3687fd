#include "studies/step/interval_table.h"

#include <spdlog/fmt/fmt.h>

#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include "runtime/base/csv.h"
#include "runtime/base/embedded_file.h"

namespace tandem::studies {

std::span<const EmbeddedFile> embedded_interval_table();  // written by the build

namespace {

constexpr const char* header = "kind,name,runs,sources,value,within\n";
constexpr std::size_t column_count = 6;

void add_line(const std::vector<CsvCell>& line, IntervalTable& table) {
  const std::string &kind = line[0].text, &name = line[1].text;
  const auto number = [&](std::size_t column) { return line[column].text.empty() ? 0 : std::stod(line[column].text); };
  const auto runs = static_cast<std::size_t>(number(2));
  if (kind == "class")
    table.classes[name] = {runs, static_cast<std::size_t>(number(3)), number(4), number(5)};
  else if (kind == "gpu")
    table.gpus[name] = runs;
  else if (kind == "framework")
    table.frameworks[name] = runs;
  else if (kind == "overhead")
    table.overhead = number(4);
  else if (kind == "unseen" && name == "gpu")
    table.unseen_gpu = number(4);
  else if (kind == "unseen" && name == "framework")
    table.unseen_framework = number(4);
  else
    throw std::logic_error("interval_table.csv has a line of an unknown kind: " + kind + "," + name);
}

}  // namespace

std::vector<std::string> class_names(const StepClass& step) {
  std::vector<std::string> names{"all", step.has_experts ? "experts" : "dense"};
  names.push_back(names.back() + " " + step.generation);
  names.push_back(names.back() + " " + step.framework);
  return names;
}

const std::pair<const std::string, IntervalTable::Class>& IntervalTable::narrowest(const StepClass& step) const {
  for (const std::string& name : class_names(step) | std::views::reverse)
    if (const auto found = classes.find(name); found != classes.end()) return *found;
  throw std::logic_error("a table of intervals without the class `all`");
}

IntervalTable interval_table_from_csv(const std::string& text) {
  IntervalTable table;
  const CsvTable lines = parse_csv(text, "interval_table.csv");
  if (lines.header.size() != column_count) throw std::logic_error("interval_table.csv has not six columns");
  for (const std::vector<CsvCell>& line : lines.rows) add_line(line, table);
  return table;
}

std::string to_csv(const IntervalTable& table) {
  std::string text = header;
  for (const auto& [name, known] : table.classes)
    text += fmt::format("class,{},{},{},{:.4g},{:.4g}\n", name, known.rows, known.sources, known.factor, known.within);
  for (const auto& [name, runs] : table.gpus) text += fmt::format("gpu,{},{},,,\n", name, runs);
  for (const auto& [name, runs] : table.frameworks) text += fmt::format("framework,{},{},,,\n", name, runs);
  text += fmt::format("overhead,step,,,{:.4g},\nunseen,gpu,,,{:.4g},\nunseen,framework,,,{:.4g},\n", table.overhead,
                      table.unseen_gpu, table.unseen_framework);
  return text;
}

const IntervalTable& interval_table() {
  static const IntervalTable table = interval_table_from_csv(std::string(embedded_interval_table().front().text));
  return table;
}

}  // namespace tandem::studies
