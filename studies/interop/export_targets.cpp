#include <utility>

#include "runtime/base/input_error.h"
#include "scenarios/interop/export_scenario.h"
#include "studies/interop/export_target.h"

namespace tandem::studies {

using WriteExport = ExportResult(const ExportTarget& target, const ExportRequest& request);

/// Each is defined in the file of its name.
WriteExport export_chakra;

namespace {

/// Writes a scenario in another program's words, by the exporter of the target's name.
ExportResult export_as_text(const ExportTarget& target, const ExportRequest& request) {
  Exported exported = export_scenario(request.scenario, request.overrides, *find_exporter(target.name));
  ExportResult result{.text = std::move(exported.text), .lost = {}, .written = {}};
  for (const Lost& lost : exported.lost) result.lost.push_back(lost.field + ": " + lost.why);
  return result;
}

}  // namespace

std::span<const ExportTarget> export_targets() {
  static const std::vector<ExportTarget> all = [] {
    std::vector<ExportTarget> rows;
    for (const Exporter& exporter : exporters()) rows.push_back({exporter.name, exporter.what, false, export_as_text});
    rows.push_back(
        {"chakra", "the step as Chakra's execution traces, for ASTRA-sim: a folder with one of each rank", true, export_chakra});
    return rows;
  }();
  return all;
}

ExportResult export_for(const ExportTarget& target, const ExportRequest& request) {
  const std::string to = "--to " + std::string(target.name);
  if (target.is_folder && request.folder.empty())
    throw InputError({"--out", 0, 0}, "is missing, and " + to + " writes a folder; expected its name");
  if (!target.is_folder && !request.ranks.empty())
    throw InputError({"--ranks", 0, 0}, "is for traces, and " + to + " writes none; expected no --ranks");
  return target.write(target, request);
}

}  // namespace tandem::studies
