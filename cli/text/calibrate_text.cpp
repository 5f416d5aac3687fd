#include "cli/text/calibrate_text.h"

#include <spdlog/fmt/fmt.h>

#include "studies/calibrate/profile_yaml.h"

namespace tandem::cli {

std::string to_text(const Calibration& calibration) {
  const Profile& profile = calibration.profile;
  std::string out = fmt::format("{} ({}): {} kernels", profile.origin.device, profile.origin.backend, profile.kernels.size());
  if (!profile.collectives.empty()) out += fmt::format(" and {} collectives", profile.collectives.size());
  out += " measured\n";
  for (const Fit& fit : fits_of(profile)) out += fmt::format("  {:<34}{:>12}   {}\n", fit.name, fit.value, fit.note);
  if (profile.collectives.empty() && calibration.collectives_unreached == 0)
    out +=
        "  no collectives: this was one GPU alone; torchrun, srun or mpirun with a process for each of several measures them\n";
  if (calibration.too_long > 0)
    out +=
        fmt::format("  left out: {} kernels of the sweep that take more than a hundredth of the budget\n", calibration.too_long);
  if (calibration.unreached > 0)
    out += fmt::format("  left out: {} kernels, {} of them asked for, when the budget was spent; --budget gives more\n",
                       calibration.unreached, calibration.requested_unreached);
  if (calibration.collectives_unreached > 0)
    out += fmt::format("  left out: {} collectives, when the budget was spent\n", calibration.collectives_unreached);
  if (calibration.failed > 0)
    out += fmt::format("  failed: {} kernels, the first with {}\n", calibration.failed, calibration.first_failure);
  return out;
}

}  // namespace tandem::cli
