#pragma once

#include <optional>

#include "scenarios/checks/checks.h"
#include "scenarios/spec/campaign_spec.h"

namespace tandem::scenarios {

/// The first rule that a campaign breaks, all of them between its own fields; none where it can be forecast.
std::optional<Objection> first_objection(const CampaignSpec& campaign);

}  // namespace tandem::scenarios
