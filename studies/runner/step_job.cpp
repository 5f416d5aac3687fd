#include "studies/runner/step_job.h"

#include <spdlog/fmt/chrono.h>
#include <spdlog/fmt/fmt.h>

#include <ctime>

#include "scenarios/reading/document.h"

namespace tandem::studies {

StepJob job_of(YamlNode document, const std::string& default_name) {
  give_name(document, default_name);
  StepJob job{.scenario = {}, .text = to_yaml(document)};
  try {
    job.scenario = read_document(document, default_name);
  } catch (const InputError& error) {
    job.scenario = refusal(error);
  }
  return job;
}

std::string utc_now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace tandem::studies
