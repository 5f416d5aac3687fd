#pragma once

#include <string_view>

namespace tandem::scenarios {

/// The preset of the cluster that is taken where another program's file names none.
inline constexpr std::string_view usual_cluster = "dgx-h100";
/// The same where the file joins hosts to NVLink domains.
inline constexpr std::string_view usual_cluster_of_domains = "gb200-nvl72";

}  // namespace tandem::scenarios
