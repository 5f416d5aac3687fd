#include "studies/sweep/point.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"

namespace tandem::studies {
namespace {

/// The innermost place of a point in the study's file.
Place place_of_point(const Study& study, const Assignments& assignments) {
  return assignments.empty() ? Place{.file = study.file} : assignments.back().value.place;
}

void give_name(YamlNode& document, const std::string& name) {
  if (document.find("name") == nullptr) document.entries.push_back({"name", "name", document.place, make_scalar(name, {})});
}

}  // namespace

std::string hash_of_scenario(const std::string& complete_scenario) {
  std::uint64_t hash = 0xcbf29ce484222325;  // offset basis and prime of 64-bit FNV
  for (const char c : "tandem " TANDEM_VERSION "\n" + complete_scenario) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return fmt::format("{:016x}", hash);
}

Point make_point(const Study& study, std::size_t index) {
  Point point{.index = index, .assignments = study.assignments(index), .scenario = {}, .hash = {}, .refusal = {}};
  YamlNode document = study.scenario;
  try {
    for (const Assignment& assignment : point.assignments)
      apply_override(document, assignment.path, assignment.value, assignment.place);
    resolve_presets(document, study.folder);
    give_name(document, study.scenario_name);
    read_document(document, study.scenario_name);
  } catch (const InputError& error) {
    point.refusal = error.what();
  }
  point.scenario = to_yaml(document);
  point.hash = hash_of_scenario(point.scenario);
  return point;
}

std::vector<PointId> validated_points(const Study& study) {
  std::vector<PointId> points;
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t index = 0; index < study.size(); ++index) {
    const Point point = make_point(study, index);
    const auto [same, is_new] = seen.emplace(point.hash, index);
    if (!is_new)
      throw InputError(place_of_point(study, point.assignments),
                       "the point " + to_text(point.assignments) + " is the same scenario as " +
                           to_text(study.assignments(same->second)) + ", expected distinct points");
    points.push_back({index, point.hash, point.refusal});
  }
  return points;
}

std::vector<std::string> refusals(const Study& study, const std::vector<PointId>& points) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> concerned;
  for (const PointId& point : points) {
    if (point.refusal.empty()) continue;
    auto same = std::ranges::find(concerned, point.refusal, [](const auto& entry) { return entry.first; });
    if (same == concerned.end()) same = concerned.insert(same, {point.refusal, {}});
    same->second.push_back(point.index);
  }
  std::vector<std::string> sentences;
  for (const auto& [refusal, indices] : concerned) {
    const std::string more = indices.size() == 1 ? "" : fmt::format(", and at {} more", indices.size() - 1);
    sentences.push_back(fmt::format("{} (at the point {}{})", refusal, to_text(study.assignments(indices.front())), more));
  }
  return sentences;
}

}  // namespace tandem::studies
