#include "studies/report/blame_beside.h"

#include <algorithm>
#include <thread>

#include "runtime/base/freed_memory.h"
#include "runtime/base/large_pages.h"
#include "sim/child_process.h"
#include "studies/step/faster_step.h"

namespace tandem::studies {
namespace {

std::vector<sim::Blame> blame_of(const Scenario& scenario, const FreshStep& step, const sim::BlameEffort& effort) {
  constexpr unsigned most_at_once = 4;
  const std::size_t jobs = std::clamp(std::thread::hardware_concurrency(), 1U, most_at_once);
  const std::vector<Speedup> candidates = sim::blame_candidates(step.dag, step.timeline, effort);
  return sim::blame(step.dag, step.timeline, candidates, faster_step_times(scenario, step, candidates, jobs));
}

}  // namespace

class BlameBeside::Work {
 public:
  Work(const Scenario& scenario, const FreshStep& step)
      : found_(effort_.most), child_([&] {
          prefer_large_pages_for_heap(small_pieces_of_most_steps);
          const std::vector<sim::Blame> all = blame_of(scenario, step, effort_);
          std::ranges::copy(all, found_.values().begin());
          count_.value() = all.size();
        }) {}

  std::vector<sim::Blame> found() {
    child_.wait();
    const std::span<const sim::Blame> all = found_.values().first(count_.value());
    return {all.begin(), all.end()};
  }

 private:
  const sim::BlameEffort effort_;
  sim::Shared<sim::Blame> found_;
  sim::SharedCounter count_;
  sim::ChildProcess child_;  ///< begins when all before it is there
};

BlameBeside::BlameBeside() = default;
BlameBeside::~BlameBeside() = default;

void BlameBeside::begin(const Scenario& scenario, const FreshStep& step) {
  work_.reset();
  give_back_freed_memory();  // which would be copied, page by page, where either process has it again
  work_ = std::make_unique<Work>(scenario, step);
}

std::vector<sim::Blame> BlameBeside::found() { return work_ ? work_->found() : std::vector<sim::Blame>{}; }

}  // namespace tandem::studies
