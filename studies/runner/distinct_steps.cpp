#include "studies/runner/distinct_steps.h"

#include <utility>
#include <vector>

namespace tandem::studies {

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
  std::vector<StepOutcome> outcomes = runner_.run(std::move(jobs), told);
  for (std::size_t i = 0; i < texts.size(); ++i) outcomes_.at(texts[i]) = std::move(outcomes[i]);
}

}  // namespace tandem::studies
