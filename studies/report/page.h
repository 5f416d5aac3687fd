#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::studies {

/// Returns the HTML report: one file that needs nothing else, with `report` (viz/src/report.ts says what it is) for its page to
/// draw.
std::string report_page(const nlohmann::ordered_json& report);

/// Returns the keys that every report has: "kind", "tandem", "title", "command". `command` is the command line that makes the
/// report.
nlohmann::ordered_json report_head(const std::string& kind, const std::string& title, const std::string& command);

}  // namespace tandem::studies
