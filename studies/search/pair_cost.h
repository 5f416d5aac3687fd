#pragma once

#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "scenarios/mesh/world.h"
#include "scenarios/schedules/chunk_layout.h"
#include "studies/search/pass_cost.h"

namespace tandem::studies {

/// A forward through one chunk and a backward through another that hide the exchanges of experts in each other's kernels
/// (scenarios/lowering/turns.h). Lower bounds of the time from something that is there to the end of a pass, which is when what
/// it gives can be sent, or where it ends the model when its last kernel ends, and to the end of both passes' kernels. -infinity
/// where one does not wait for the other.
struct PairCost {
  struct Ends {
    Seconds forward = 0, backward = 0, both = 0;
    bool operator==(const Ends&) const = default;
  };
  Ends from_stream;          ///< from the end of the rank's kernel before them
  Ends from_forward_input;   ///< from the arrival of the forward's input
  Ends from_backward_input;  ///< of the backward's
  Bytes memory = 0;          ///< of both micro-batches, at the fullest moment of the pair; without activations on the host
  bool operator==(const PairCost&) const = default;
};

/// Costs of such pairs by what they depend on, each found once. Finding one lowers the pair on a rank of its stage, after passes
/// of other micro-batches through the same chunks, and takes longest paths through the two: any number of exchanges may be under
/// way at once, as long as kernels and exchanges keep to their streams, and every path between two pairs goes through a kernel,
/// so that they add up. See PassCosts for what all scenarios have in common.
class PairCosts {
 public:
  /// Returns the cost of the forward through one chunk of a stage beside the backward through one, which may be the same.
  const PairCost& of(const Scenario& scenario, std::int32_t stage, std::int32_t forward_chunk, std::int32_t backward_chunk);
  /// Returns those of a scenario: by stage, by the forward's chunk, by the backward's; none where passes hide no exchanges.
  std::vector<PairCost> all_of(const Scenario& scenario);
  std::size_t found() const { return known_.size(); }

  /// Notes that `of` will be asked for the costs of the scenario's pairs.
  void ask_for(const Scenario& scenario);
  /// Finds all costs that were asked for, in `jobs` processes at once. Tells `progress` now and then how many are found.
  void find(std::size_t jobs, const std::function<void(std::size_t done, std::size_t of)>& progress);

 private:
  /// What a chunk holds.
  using Contents = std::tuple<std::vector<LayerClass>, bool, bool, std::int64_t, std::int64_t>;
  struct Key {
    PassCosts::Key step;
    Contents forward, backward;
    auto operator<=>(const Key&) const = default;
  };
  struct Pair {
    Scenario scenario;
    std::int32_t stage = 0, forward_chunk = 0, backward_chunk = 0;
  };
  using MeshKey = std::tuple<PassCosts::Key, std::int64_t, std::int64_t, ScheduleKind>;
  std::map<Key, PairCost> known_;
  std::map<Key, Pair> asked_for_;
  std::map<MeshKey, World> worlds_;

  static Key key_of(const Scenario& scenario, std::int32_t stage, std::int32_t forward_chunk, std::int32_t backward_chunk);
  static MeshKey mesh_of(const Key& key, const Scenario& scenario);
  PairCost measured(const Key& key, const Pair& pair);
};

/// Whether passes of the scenario are such pairs.
bool hides_exchanges(const Scenario& scenario);

}  // namespace tandem::studies
