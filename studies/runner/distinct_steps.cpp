#include "studies/runner/distinct_steps.h"

#include <utility>
#include <vector>

#include "scenarios/reading/document.h"

namespace tandem::studies {
namespace {

/// Fills presets in, so that the text is all that another machine needs, and another text once a preset's file has changed.
std::string complete(const std::string& text) { return to_yaml(parse_document(text, "a scenario", {})); }

}  // namespace

void DistinctSteps::want(StepJob job) {
  std::string text = job.text;
  if (outcomes_.try_emplace(text).second) waiting_.emplace(std::move(text), std::move(job));
}

void DistinctSteps::run(const OnRunProgress& told) {
  std::vector<std::string> texts;
  std::vector<StepJob> jobs;
  std::map<std::string, StepJob> waiting = std::exchange(waiting_, {});
  for (auto& [text, job] : waiting) {
    texts.push_back(text);
    jobs.push_back(std::move(job));
  }
  if (workers_.pool != nullptr)
    for (StepJob& job : jobs) job.text = complete(job.text);
  std::vector<StepOutcome> outcomes = StepRunner(workers_).run(std::move(jobs), told);
  for (std::size_t i = 0; i < texts.size(); ++i) outcomes_.at(texts[i]) = std::move(outcomes[i]);
}

}  // namespace tandem::studies
