#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::studies {

/// The HTML report: one file that needs nothing else, with `report` (viz/src/report.ts says what it is) for its page to draw.
/// Throws std::runtime_error where this program was built without the page (no Node.js at the time).
std::string report_page(const nlohmann::ordered_json& report);

/// Throws the same, before the work begins.
void require_report_page();

/// Keys that every report has: "kind", "tandem", "title", "command". `command` is the command line that makes the report.
nlohmann::ordered_json report_head(const std::string& kind, const std::string& title, const std::string& command);

}  // namespace tandem::studies
