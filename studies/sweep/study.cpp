#include "studies/sweep/study.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/nearest.h"
#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/reader.h"

namespace tandem::studies {
namespace {

constexpr std::size_t most_points = 100'000;

const YamlNode& expect_filled(const YamlNode& node, YamlNode::Kind kind, const std::string& name, const std::string& expected) {
  if (node.kind != kind || (node.items.empty() && node.entries.empty())) {
    const bool empty = node.kind == kind;
    throw InputError(node.place, name + " is " + (empty ? "empty" : describe(node)) + ", expected " + expected);
  }
  return node;
}

Assignments read_assignments(const YamlNode& node, const std::string& name) {
  expect_filled(node, YamlNode::Kind::mapping, name, "a mapping such as {parallelism.dp: 8}");
  Assignments assignments;
  for (const YamlNode::Entry& entry : node.entries) assignments.push_back({entry.key, entry.place, entry.value});
  return assignments;
}

Study::GridField read_grid_field(const YamlNode::Entry& entry) {
  expect_filled(entry.value, YamlNode::Kind::sequence, "study.grid." + entry.key, "a list of values");
  Study::GridField field{entry.key, entry.place, {}};
  std::vector<std::string> seen;
  for (const YamlNode& value : entry.value.items) {
    const std::string text = to_yaml(value);
    if (std::ranges::find(seen, text) != seen.end())
      throw InputError(value.place, "study.grid." + entry.key + " lists " + excerpt(text) + " twice, expected distinct values");
    seen.push_back(text);
    field.values.push_back(value);
  }
  return field;
}

/// A field has one value at a point, so it stands in one of `set`, `points` and `grid`.
void expect_apart(const Assignments& set, const Study& study) {
  const auto expect_not_in = [](const Assignments& others, const std::string& section, const std::string& path,
                                const Place& place) {
    const auto other = std::ranges::find(others, path, &Assignment::path);
    if (other != others.end())
      throw InputError(place, excerpt(path) + " stands in study." + section + ", too, on line " +
                                  std::to_string(other->place.line) + ", expected it in one of them");
  };
  for (const Assignments& point : study.points)
    for (const Assignment& assignment : point) expect_not_in(set, "set", assignment.path, assignment.place);
  for (const Study::GridField& field : study.grid) {
    expect_not_in(set, "set", field.path, field.place);
    for (const Assignments& point : study.points) expect_not_in(point, "points", field.path, field.place);
  }
}

void read_scenario(Study& study, const YamlNode& node) {
  const std::filesystem::path file(study.file);
  study.folder = file.parent_path().string();
  study.scenario = node;
  study.scenario_name = study.name;
  if (node.kind == YamlNode::Kind::scalar) {
    const std::filesystem::path path = (file.parent_path() / node.text).lexically_normal();
    if (!std::filesystem::exists(path))
      throw InputError(node.place,
                       "there is no scenario " + excerpt(path.string()) + ", expected a path from the study's folder");
    study.folder = path.parent_path().string();
    study.scenario_name = path.stem().string();
    study.scenario = parse_yaml(read_text_file(path.string()), path.string());
  }
  tidy_names(study.scenario);
}

std::vector<std::string> varied_paths(const Study& study) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string& path) {
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  };
  for (const Assignments& point : study.points)
    for (const Assignment& assignment : point) add(assignment.path);
  for (const Study::GridField& field : study.grid) add(field.path);
  return paths;
}

void expect_size(const Study& study, const YamlNode& document) {
  std::size_t size = study.points.size();
  for (const Study::GridField& field : study.grid) {
    size *= field.values.size();  // both below 20,000, the most values of a file, so this cannot overflow
    if (size > most_points)
      throw InputError(place_of(document, "grid"),
                       "the study has more than " + grouped(most_points) + " points, expected a smaller grid");
  }
}

}  // namespace

std::size_t Study::size() const {
  std::size_t size = points.size();
  for (const GridField& field : grid) size *= field.values.size();
  return size;
}

Assignments Study::assignments(std::size_t point) const {
  Assignments cell;
  for (auto field = grid.rbegin(); field != grid.rend(); ++field) {
    cell.push_back({field->path, field->place, field->values[point % field->values.size()]});
    point /= field->values.size();
  }
  Assignments all = points[point];
  all.insert(all.end(), cell.rbegin(), cell.rend());
  return all;
}

Study load_study(const std::string& path) {
  const YamlNode document = parse_yaml(read_text_file(path, "a study in YAML"), path);
  const Reader reader(document, "study", {"scenario", "name", "set", "grid", "points", "skip_invalid"});
  if (!reader.has("scenario"))
    reader.fail("scenario", "study.scenario is missing, expected the path of a scenario, or a scenario as a mapping");
  if (!reader.has("grid") && !reader.has("points"))
    reader.fail("grid", "the study has neither grid nor points, expected at least one of them");

  Study study;
  study.file = path;
  study.name = reader.text("name", std::filesystem::path(path).stem().string());
  study.skip_invalid = reader.boolean("skip_invalid", false);
  read_scenario(study, reader.child("scenario"));
  Assignments set;
  if (reader.has("set")) set = read_assignments(reader.child("set"), "study.set");
  if (reader.has("points")) {
    const YamlNode& list = reader.child("points");
    for (const YamlNode& item : expect_filled(list, YamlNode::Kind::sequence, "study.points", "a list of points").items)
      study.points.push_back(read_assignments(item, "a point"));
  } else {
    study.points.emplace_back();
  }
  if (reader.has("grid")) {
    const YamlNode& grid = expect_filled(reader.child("grid"), YamlNode::Kind::mapping, "study.grid",
                                         "a mapping from fields to lists, such as {parallelism.dp: [8, 16]}");
    for (const YamlNode::Entry& entry : grid.entries) study.grid.push_back(read_grid_field(entry));
  }
  expect_apart(set, study);
  study.paths = varied_paths(study);
  expect_size(study, document);
  for (const Assignment& assignment : set) apply_override(study.scenario, assignment.path, assignment.value, assignment.place);
  return study;
}

std::string to_text(const Assignments& assignments) {
  std::string text;
  for (const Assignment& assignment : assignments)
    text += (text.empty() ? "" : " ") + assignment.path + "=" + to_yaml(assignment.value);
  return text;
}

}  // namespace tandem::studies
