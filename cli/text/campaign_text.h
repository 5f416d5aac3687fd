#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/campaign/forecast.h"

namespace tandem::cli {

std::string to_text(const CampaignForecast& forecast, const Screen& screen = {});

}  // namespace tandem::cli
