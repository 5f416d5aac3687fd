#include <spdlog/fmt/fmt.h>

#include "scenarios/reading/load.h"
#include "studies/chakra/write_chakra.h"
#include "studies/interop/export_target.h"
#include "studies/trace/trace_ranks.h"

namespace tandem::studies {

/// Simulates the scenario's step and writes it as Chakra's execution traces.
ExportResult export_chakra(const ExportTarget& /*target*/, const ExportRequest& request) {
  const Scenario scenario = load_scenario(request.scenario, request.overrides);
  std::vector<std::uint32_t> ranks;
  if (!request.ranks.empty()) ranks = parse_ranks(request.ranks, scenario.parallelism.world_size());
  ChakraWritten written = write_chakra(scenario, ranks, request.folder);
  return {.text = {},
          .lost = std::move(written.notes),
          .written = fmt::format("{}: {} nodes of {} of {} ranks in step.RANK.et, their process groups in comm_group.json",
                                 request.folder, written.nodes, written.ranks, scenario.parallelism.world_size())};
}

}  // namespace tandem::studies
