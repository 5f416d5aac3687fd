#include "runtime/launch/sentences.h"

#include <algorithm>
#include <sstream>

namespace tandem {

Seconds now_in_seconds() { return std::chrono::duration<Seconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::chrono::nanoseconds duration(Seconds seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<Seconds>(std::max(seconds, 0.0)));
}

Seconds longest_gap(const ControlOptions& options) { return std::max(2 * options.report_interval, options.silence / 4); }

std::string task_text(const ControlOptions& options, const ProgressReport& report) {
  if (report.task == no_task) return "before its first task";
  const std::string number = std::to_string(report.task);
  if (!options.task_name) return "at task " + number;
  return "at task '" + options.task_name(report.task) + "' (" + number + ")";
}

std::string seconds_text(Seconds seconds) {
  std::ostringstream text;
  text << seconds << " s";
  return text.str();
}

}  // namespace tandem
