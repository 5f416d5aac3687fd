#include "studies/runner/step_job.h"

#include "scenarios/reading/document.h"

namespace tandem::studies {

StepJob job_of(const YamlNode& document, const std::string& default_name) {
  StepJob job{.scenario = {}, .text = to_yaml(document)};
  try {
    job.scenario = read_document(document, default_name);
  } catch (const InputError& error) {
    job.scenario = refusal(error);
  }
  return job;
}

}  // namespace tandem::studies
