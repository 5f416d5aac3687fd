#include "cli/terminal/points_progress.h"

#include <spdlog/fmt/fmt.h>

#include "cli/terminal/progress.h"

namespace tandem::cli {

std::string progress_line(std::size_t done, std::size_t total, std::size_t running, std::size_t finished, Seconds elapsed,
                          std::size_t width) {
  std::optional<Seconds> left;
  if (finished > 0) left = elapsed / static_cast<double>(finished) * static_cast<double>(total - done);
  return progress_text(fmt::format("{}/{} points, {} running", done, total, running),
                       static_cast<double>(done) / static_cast<double>(total), left, width);
}

void PointsProgress::show(const RunProgress& p) {
  if (!line_.is_shown()) return;
  line_.show(progress_line(p.done, p.total, p.running, p.done - p.done_before, stopwatch_.elapsed(), line_.width()));
}

}  // namespace tandem::cli
