#include "studies/diff/difference_of_files.h"

#include <optional>
#include <utility>

#include "runtime/base/input_error.h"
#include "studies/kineto/traced_result.h"
#include "studies/step/step_result.h"
#include "traces/dag_file.h"
#include "traces/timeline_file.h"

namespace tandem::studies {
namespace {

NamedResult result_of_timeline(const std::string& path, const Dag& dag) {
  const Timeline timeline = read_timeline(path, dag).timeline;
  if (timeline.makespan() <= 0) throw InputError({path, 0, 0}, "takes no time, expected the timeline of a step");
  NamedResult result{path, summarize(dag, timeline, DType::bf16, {.backend = ""})};
  result.step.mfu = 0;  // no file tells which precision it is of
  return result;
}

}  // namespace

ResultDifference difference_of_files(const std::string& a, const std::string& b, const std::string& dag) {
  if ((is_timeline(a) && holds_kineto_traces(b)) || (is_timeline(b) && holds_kineto_traces(a)))
    throw InputError({is_timeline(a) ? a : b, 0, 0},
                     "is a timeline of a graph's tasks, and a framework's kernels are others; expected a result of `--json`");
  const bool has_timeline = is_timeline(a) || is_timeline(b);
  if (has_timeline && dag.empty())
    throw InputError({is_timeline(a) ? a : b, 0, 0},
                     "is a timeline, which tells nothing without its DAG; expected --dag F as well, "
                     "F being what `tandem lower SCENARIO --out F` wrote");
  std::optional<Dag> lowered;
  if (has_timeline) lowered = read_dag(dag);
  const bool has_traces = holds_kineto_traces(a) || holds_kineto_traces(b);
  const auto load = [&](const std::string& path) {
    if (holds_kineto_traces(path)) return NamedResult{path, traced_result(path)};
    if (has_traces) return NamedResult{path, in_words_of_traces(read_step_result(path))};
    return is_timeline(path) ? result_of_timeline(path, *lowered) : NamedResult{path, read_step_result(path)};
  };
  NamedResult first = load(a);  // whose fault is told first
  ResultDifference difference = difference_of(std::move(first), load(b));
  if (!has_timeline && !dag.empty())
    throw InputError({"--dag " + dag, 0, 0}, "is for timelines, expected one of those to compare");
  return difference;
}

}  // namespace tandem::studies
