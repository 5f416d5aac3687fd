#include "studies/diff/difference_of_files.h"

#include <optional>
#include <utility>

#include "runtime/base/input_error.h"
#include "studies/step/step_result.h"
#include "traces/dag_file.h"
#include "traces/timeline_file.h"

namespace tandem::studies {
namespace {

ComparableResult result_of_timeline(const std::string& path, const Dag& dag) {
  const Timeline timeline = read_timeline(path, dag).timeline;
  if (timeline.makespan() <= 0) throw InputError({path, 0, 0}, "takes no time, expected the timeline of a step");
  ComparableResult result = parse_result(to_json(summarize(dag, timeline, DType::bf16, {.backend = ""})), path);
  result.mfu.reset();  // no file tells which precision it is of
  return result;
}

}  // namespace

ResultDifference difference_of_files(const std::string& a, const std::string& b, const std::string& dag) {
  const bool has_timeline = is_timeline(a) || is_timeline(b);
  if (has_timeline && dag.empty())
    throw InputError({is_timeline(a) ? a : b, 0, 0},
                     "is a timeline, which tells nothing without its DAG; expected --dag F as well, "
                     "F being what `tandem lower SCENARIO --out F` wrote");
  std::optional<Dag> lowered;
  if (has_timeline) lowered = read_dag(dag);
  const auto load = [&](const std::string& path) {
    return is_timeline(path) ? result_of_timeline(path, *lowered) : read_result(path);
  };
  ComparableResult first = load(a);  // whose fault is told first
  ResultDifference difference = difference_of(std::move(first), load(b));
  if (!has_timeline && !dag.empty())
    throw InputError({"--dag " + dag, 0, 0}, "is for timelines, expected one of those to compare");
  return difference;
}

}  // namespace tandem::studies
