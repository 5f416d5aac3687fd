#include "runtime/analysis/repeated_changes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tandem {
namespace {

/// Where in the model a buffer is first touched, and the how manieth of these and this size it is; with a micro-batch, that tells
/// a buffer.
struct Place {
  std::int16_t chunk = -1, layer = -1;
  Phase phase = Phase::forward;
  std::uint16_t name = 0;
  std::ptrdiff_t operand = 0;
  Bytes bytes = 0;
  std::int32_t micro_batch = -1;
  std::int32_t occurrence = 0;

  auto operator<=>(const Place&) const = default;
};

/// A buffer of the whole step: the timeline's, in one of the times that the stretch happens; 0 before the first repetition.
using Instance = std::pair<BufferId, std::int64_t>;

class WholeStep {
 public:
  WholeStep(const Dag& dag, const Timeline& timeline, const std::vector<MemoryChange>& changes, RankIndex rank)
      : dag_(dag), repeat_(timeline.repeat), changes_(changes) {
    for (const MemoryChange& change : changes)
      if (change.bytes > 0) allocated_.try_emplace(change.buffer, change.at);
    std::map<Place, std::int32_t> occurrences;
    for (TaskId id = 0; id < dag.tasks.size(); ++id) {
      if (dag.tasks[id].rank != rank) continue;
      for (const Operand& operand : dag.operands_of(id)) {
        const BufferId base = dag.buffers[operand.buffer].base;
        if (is_persistent(dag.buffers[base].kind) || place_of_.contains(base)) continue;
        const Task& task = dag.tasks[id];
        Place place{
            task.chunk,      task.layer, task.phase, task.name, &operand - dag.operands_of(id).data(), dag.buffers[base].bytes(),
            task.micro_batch};
        place.occurrence = occurrences[place]++;
        place_of_.emplace(base, place);
        at_.emplace(place, base);
      }
    }
  }

  std::optional<std::vector<MemoryChange>> changes() {
    std::vector<MemoryChange> all;
    const auto in_stretch = std::ranges::count_if(changes_, [&](const MemoryChange& change) { return repeat_.holds(change.at); });
    all.reserve(changes_.size() + static_cast<std::size_t>(in_stretch * repeat_.times));
    const bool found = all_in_whole_step(changes_, repeat_, [&](const MemoryChange& change, std::int64_t time) {
      const std::optional<Instance> instance = instance_of(change.buffer, time);
      if (instance) all.push_back({repeat_.again_at(change.at, time), change.bytes, number_of(*instance), change.is_activation});
      return instance.has_value();
    });
    if (!found) return {};
    return all;
  }

 private:
  const Dag& dag_;
  const Repeat& repeat_;
  const std::vector<MemoryChange>& changes_;
  std::unordered_map<BufferId, Seconds> allocated_;
  std::unordered_map<BufferId, Place> place_of_;
  std::map<Place, BufferId> at_;
  std::map<Instance, BufferId> numbers_;

  BufferId number_of(const Instance& instance) {
    return numbers_.try_emplace(instance, static_cast<BufferId>(numbers_.size())).first->second;
  }

  /// The same buffer of the micro-batch so many periods later.
  BufferId later(BufferId buffer, std::int64_t periods) const {
    Place place = place_of_.at(buffer);
    if (place.micro_batch < 0) return no_id;
    place.micro_batch += static_cast<std::int32_t>(periods) * repeat_.micro_batches;
    const auto found = at_.find(place);
    return found == at_.end() ? no_id : found->second;
  }

  /// What a change of `buffer` is of, when the stretch happens for the `time`-th time again, or after the last.
  std::optional<Instance> instance_of(BufferId buffer, std::int64_t time) const {
    // What a framework holds beside a weight comes and goes with one task.
    if (is_persistent(dag_.buffers[buffer].kind)) return Instance{buffer, 0};
    const Seconds at = allocated_.at(buffer);
    if (time == 0 || at >= repeat_.from) return Instance{buffer, time};
    if (later(buffer, 1) == no_id) return Instance{buffer, 0};  // of no micro-batch, or kept from the first one on
    for (std::int64_t periods = 1; periods <= time; ++periods) {
      const BufferId same = later(buffer, periods);
      if (same == no_id) return {};
      const Seconds then = allocated_.at(same);
      if (then >= repeat_.to) return {};
      if (then >= repeat_.from || periods == time) return Instance{same, time - periods};
    }
    return {};
  }
};

}  // namespace

std::optional<std::vector<MemoryChange>> changes_of_whole_step(const Dag& dag, const Timeline& timeline,
                                                               std::vector<MemoryChange> changes, RankIndex rank) {
  if (timeline.repeat.times == 0) return changes;
  return WholeStep(dag, timeline, changes, rank).changes();
}

}  // namespace tandem
