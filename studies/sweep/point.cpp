#include "studies/sweep/point.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <unordered_map>

#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"
#include "studies/runner/scenario_hash.h"

namespace tandem::studies {
namespace {

/// Returns the innermost place of a point in the study's file.
Place place_of_point(const Study& study, const Assignments& assignments) {
  return assignments.empty() ? Place{.file = study.file} : assignments.back().value.place;
}

}  // namespace

std::vector<NamedCell> values_of_point(const Study& study, std::size_t index) {
  std::vector<NamedCell> values;
  for (const std::string& path : study.paths) values.push_back({path, {}});
  for (const Assignment& assignment : study.assignments(index))
    std::ranges::find(values, assignment.path, &NamedCell::name)->cell = cell_of(assignment.value);
  return values;
}

StepJob job_of_point(const Study& study, std::size_t index) {
  YamlNode document = study.scenario;
  StepJob job;
  try {
    for (const Assignment& assignment : study.assignments(index)) apply_override(document, assignment);
    resolve_presets(document, study.folder);
    job = job_of(document, study.scenario_name);
  } catch (const InputError& error) {
    job.scenario = refusal(error);
    job.text = to_yaml(document);
  }
  job.study = study.name;
  job.point = index;
  job.values = values_of_point(study, index);
  return job;
}

std::vector<PointId> validated_points(const Study& study) {
  std::vector<PointId> points;
  std::unordered_map<std::string, std::size_t> seen;
  for (std::size_t index = 0; index < study.size(); ++index) {
    const StepJob job = job_of_point(study, index);
    const std::string hash = hash_of_scenario(job.text);
    const auto [same, is_new] = seen.emplace(hash, index);
    const Assignments assignments = study.assignments(index);
    if (!is_new)
      throw InputError(place_of_point(study, assignments), "the point " + to_text(assignments) + " is the same scenario as " +
                                                               to_text(study.assignments(same->second)) +
                                                               ", expected distinct points");
    const auto* refused = std::get_if<StepFailure>(&job.scenario);
    points.push_back({index, hash, refused == nullptr ? "" : refused->text()});
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
