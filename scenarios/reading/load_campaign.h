#pragma once

#include <string>
#include <vector>

#include "scenarios/reading/yaml_tree.h"
#include "scenarios/spec/campaign_spec.h"
#include "scenarios/spec/scenario.h"

namespace tandem::scenarios {

/// A scenario and the weeks of it. `document` gives later errors their places (`refuse` in culprit.h).
struct Campaign {
  Scenario scenario;
  CampaignSpec spec;
  YamlNode document;
};

/// Like `load_scenario`, with the section `campaign`, whose preset (presets/campaigns; llama3-2024 where none is named) fills in
/// what is not stated. The preset's mean times between failures count only where `faults.mtbf` states none: they are of one
/// cluster. Throws InputError, also for settings that contradict each other, by the names of both.
Campaign load_campaign(const std::string& path, const std::vector<std::string>& overrides);

/// Reads a campaign from text; `name` stands for the file in messages.
Campaign parse_campaign(const std::string& text, const std::string& name, const std::vector<std::string>& overrides);

}  // namespace tandem::scenarios
