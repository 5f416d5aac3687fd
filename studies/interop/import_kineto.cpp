#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>

#include "studies/interop/import_source.h"
#include "studies/kineto/rank_step.h"

namespace tandem::studies {

/// Reads what torch.profiler traced: one step of each rank, as docs/json.md has it under "A traced step".
ImportResult import_kineto(const ImportSource& /*source*/, const ImportRequest& request) {
  const std::vector<KinetoTrace> traces = read_kineto_traces(request.paths.front());
  std::vector<RankStep> steps;
  for (const KinetoTrace& trace : traces) steps.push_back(step_of(trace, request.step));
  ImportResult result{.out = to_json_object(traces, steps).dump(1) + "\n"};
  const auto missing = traces.front().world_size - static_cast<std::int64_t>(traces.size());
  if (missing > 0) result.warnings.push_back(fmt::format("{} of {} ranks are not there", missing, traces.front().world_size));
  return result;
}

}  // namespace tandem::studies
