#include "runtime/launch/progress_watch.h"

#include <algorithm>

namespace tandem {

ProgressWatch::ProgressWatch(std::size_t processes, Seconds timeout, Seconds silence, Seconds now)
    : timeout_(timeout), silence_(silence), processes_(processes, Process{.report = {}, .heard = now, .advanced = now}) {}

void ProgressWatch::report(std::uint32_t rank, const ProgressReport& report, Seconds now) {
  Process& process = processes_[rank];
  process.heard = now;
  if (report.count != process.report.count || report.waiting != process.report.waiting) process.advanced = now;
  process.report = report;
}

std::optional<ProgressWatch::Culprit> ProgressWatch::culprit(Seconds now) const {
  const auto rank_of = [&](const Process& process) { return static_cast<std::uint32_t>(&process - processes_.data()); };
  const Process& quietest = *std::ranges::min_element(processes_, {}, &Process::heard);
  if (now - quietest.heard >= silence_) return Culprit{rank_of(quietest), Reason::silent};

  const Process* stuck = nullptr;
  const Process* waiting = nullptr;
  bool all_wait = true;
  for (const Process& process : processes_) {
    all_wait = all_wait && process.report.waiting && now - process.advanced >= timeout_;
    if (now - process.advanced < timeout_) continue;
    const Process*& longest = process.report.waiting ? waiting : stuck;
    if (longest == nullptr || process.advanced < longest->advanced) longest = &process;
  }
  if (waiting == nullptr) return std::nullopt;
  if (stuck != nullptr) return Culprit{rank_of(*stuck), Reason::stuck};
  if (all_wait) return Culprit{rank_of(*waiting), Reason::deadlock};
  return std::nullopt;
}

}  // namespace tandem
