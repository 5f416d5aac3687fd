#include "studies/search/explain.h"

#include "scenarios/reading/document.h"

namespace tandem::studies {

Explanation explain(const Plan& plan, const SearchSpec& spec, const PlanSpace& space, Search& search, PlanRuns& runs) {
  Explanation explanation{.plan = plan, .refusal = {}, .memory = {}, .rated = {}, .lacks = {}, .failure = {}};
  explanation.is_among = space.contains(plan);
  try {
    read_document(document_of(plan, space.choices(), spec), spec.name);
  } catch (const InputError& error) {
    explanation.refusal = error.what();
    return explanation;
  }
  explanation.memory = search.memory_bound_of(plan);
  explanation.time_bound = search.time_bound(plan);
  runs.run({plan});
  const StepOutcome& outcome = runs.of(plan);
  if (const StepFailure* failure = outcome.failure()) {
    explanation.failure = failure->text();
    return explanation;
  }
  const StepResult& step = *outcome.result();
  explanation.rated = RatedPlan{plan, explanation.time_bound, step, score(spec, plan.gpus, step.tokens, step.step_time)};
  explanation.lacks = shortfall(spec, step);
  return explanation;
}

}  // namespace tandem::studies
