#include "studies/runner/scenario_source.h"

#include <utility>

#include "runtime/base/text_file.h"
#include "scenarios/reading/document.h"
#include "scenarios/reading/overlay.h"
#include "scenarios/reading/presets.h"

namespace tandem::studies {

ScenarioSource::ScenarioSource(const std::string& path, const std::vector<std::string>& overrides)
    : ScenarioSource(parse_yaml(read_text_file(path, a_scenario), path), path, overrides) {}

ScenarioSource ScenarioSource::of_text(const std::string& text, const std::filesystem::path& path,
                                       const std::vector<std::string>& overrides) {
  return {parse_yaml(text, path.filename().string()), path, overrides};
}

ScenarioSource::ScenarioSource(YamlNode document, std::filesystem::path file, const std::vector<std::string>& overrides)
    : document_(std::move(document)), file_(std::move(file)) {
  tidy_names(document_);
  for (const std::string& option : overrides) apply_override(document_, option);
}

YamlNode ScenarioSource::resolved(const std::vector<std::string>& changes) const {
  YamlNode document = document_;
  for (const std::string& change : changes) apply_override(document, change);
  resolve_presets(document, file_.parent_path().string());
  give_name(document, name());
  return document;
}

std::optional<StepJob> ScenarioSource::changed(const std::vector<std::string>& changes) const {
  try {
    StepJob job = job_of(resolved(changes), name());
    if (std::holds_alternative<Scenario>(job.scenario)) return job;
  } catch (const InputError&) {
    // Options and presets are refused before there is a job.
  }
  return {};
}

std::string set_options(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& change : changes) {
    const bool quoted = change.find_first_of(" {}[]") != std::string::npos;
    text += (text.empty() ? "--set " : " --set ") + (quoted ? "'" + change + "'" : change);
  }
  return text;
}

}  // namespace tandem::studies
