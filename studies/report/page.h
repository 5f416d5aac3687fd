#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tandem::studies {

/// The HTML report: one file that needs nothing else, with `report` (viz/src/report.ts says what it is) for its page to draw.
std::string report_page(const nlohmann::ordered_json& report);

/// Keys that every report has: "kind", "tandem", "title", "command".
nlohmann::ordered_json report_head(const std::string& kind, const std::string& title);

/// The command line, for pages to say what made them.
void remember_command(int argc, const char* const* argv);

}  // namespace tandem::studies
