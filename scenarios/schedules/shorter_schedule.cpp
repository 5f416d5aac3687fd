#include "scenarios/schedules/shorter_schedule.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include "scenarios/schedules/schedule_table.h"
#include "scenarios/schedules/stage_actions.h"

namespace tandem::scenarios {
namespace {

constexpr std::size_t steady_periods = 4;  ///< that must be left, so that two which are alike can be told from what comes before

/// The micro-batches that pass a chunk on one stage: all, or of two copies of the model one half.
struct OfChunk {
  std::int32_t first = std::numeric_limits<std::int32_t>::max(), last = -1;

  std::int32_t count() const { return last - first + 1; }
};

/// A stage's actions, each micro-batch counted from its chunk's first or from its last.
class StageSchedule {
 public:
  explicit StageSchedule(std::vector<Action> actions) : actions_(std::move(actions)) {
    for (const Action& action : actions_) {
      const auto chunk = static_cast<std::size_t>(action.chunk);
      if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
      chunks_[chunk].first = std::min(chunks_[chunk].first, action.micro_batch);
      chunks_[chunk].last = std::max(chunks_[chunk].last, action.micro_batch);
    }
  }

  std::size_t size() const { return actions_.size(); }
  const std::vector<OfChunk>& chunks() const { return chunks_; }
  auto from_first(std::size_t i) const { return described(i, actions_[i].micro_batch - chunk_of(i).first); }
  auto from_last(std::size_t i) const { return described(i, chunk_of(i).last - actions_[i].micro_batch); }
  /// Whether the action does `shift` of its chunk's micro-batches later what the other does.
  bool repeats(std::size_t i, std::size_t before, std::int32_t period, std::int32_t all) const {
    const std::int32_t shift = period * chunk_of(i).count() / all;
    return described(i, actions_[i].micro_batch) == described(before, actions_[before].micro_batch + shift);
  }

 private:
  std::vector<Action> actions_;
  std::vector<OfChunk> chunks_;

  const OfChunk& chunk_of(std::size_t i) const { return chunks_[static_cast<std::size_t>(actions_[i].chunk)]; }
  std::tuple<Action::Kind, std::int32_t, bool, bool, std::int32_t> described(std::size_t i, std::int32_t micro_batch) const {
    const Action& action = actions_[i];
    return {action.kind, action.chunk, action.beside_next, action.exchanges_with_next, micro_batch};
  }
};

/// Whether `whole` is `part` with so many periods of so many actions after each other put in, somewhere in a stretch of `part`
/// that is `steady_periods` long.
bool has_periods_more(const StageSchedule& whole, const StageSchedule& part, const ShorterSchedule& shorter, std::int32_t all) {
  const std::size_t added = whole.size() - part.size();
  const auto periods = static_cast<std::size_t>(shorter.left_out);
  if (added % periods != 0) return false;
  const std::size_t period = added / periods;
  std::size_t begin = 0, end = 0;
  while (begin < part.size() && part.from_first(begin) == whole.from_first(begin)) ++begin;
  while (end < part.size() && part.from_last(part.size() - 1 - end) == whole.from_last(whole.size() - 1 - end)) ++end;
  if (begin + end < part.size() + steady_periods * period) return false;
  const std::size_t steady = part.size() - end;
  for (std::size_t i = steady; i + period < begin + added; ++i)
    if (!whole.repeats(i + period, i, shorter.period, all)) return false;
  return true;
}

}  // namespace

std::optional<ShorterSchedule> shorter_schedule(const Scenario& scenario, std::int32_t micro_batches, std::int64_t multiple) {
  const ScheduleTraits& traits = traits_of(scenario.training.schedule);
  const auto stages = static_cast<std::int32_t>(scenario.parallelism.pp);
  const auto all = static_cast<std::int32_t>(scenario.training.micro_batches(scenario.parallelism));
  ShorterSchedule shorter;
  shorter.period = static_cast<std::int32_t>(traits.micro_batch_unit(stages));
  if (scenario.training.documents.any() || micro_batches >= all) return {};
  shorter.left_out = (all - micro_batches) / shorter.period / multiple * multiple;
  if (shorter.left_out == 0) return {};
  shorter.micro_batches = all - static_cast<std::int32_t>(shorter.left_out) * shorter.period;
  if (shorter.micro_batches <= 0 || !traits.admits_micro_batches(shorter.micro_batches, stages)) return {};
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const StageSchedule whole(stage_actions(scenario, stage, all));
    const StageSchedule part(stage_actions(scenario, stage, shorter.micro_batches));
    if (!has_periods_more(whole, part, shorter, all)) return {};
    if (stage == 0) shorter.period_of_chunk = shorter.period * whole.chunks().front().count() / all;
  }
  return shorter;
}

}  // namespace tandem::scenarios
