#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tandem::cli {

/// Parses a JSON result and expects of it every key, and that its times add up: the parts to the step time.
nlohmann::json checked_result(const std::string& text);

/// Expects a simulated step to lie between its bounds.
void expect_within_bounds(const nlohmann::json& result);

/// The text without what differs from run to run: how long it took and how much memory.
std::string without_run_costs(const std::string& json_text);

}  // namespace tandem::cli
