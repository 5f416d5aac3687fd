#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

/// How the model's parts lie on the stages (see ChunkPlacement, which knows each part's stage).
enum class ChunkPath : std::uint8_t {
  loop,     ///< from the last stage on to the first
  v,        ///< down the stages and back up
  mirrored  ///< two copies of the model, one in each direction
};

/// All that is known of a pipeline schedule. Readers, checks, searches, exporters and reports ask this table; none of them keeps
/// a list of schedules of its own.
struct ScheduleTraits {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  std::string_view name = {};        ///< in scenarios, studies, results and on the command line
  std::string_view elsewhere = {};   ///< another name in the literature, which readers answer with `name`
  std::string_view megatron = {};    ///< what Megatron-Core calls it; empty: it has no such schedule
  std::string_view torchtitan = {};  ///< what TorchTitan calls it; empty: it has no such schedule

  ChunkPath path = ChunkPath::loop;
  bool splits_backward = false;         ///< into the gradients of inputs and those of weights
  bool pairs_passes = false;            ///< always runs a forward beside a backward, in turns (`Action::beside_next`)
  std::int64_t most_stages_paired = 0;  ///< stages up to which it can do so (`PipelineShape::pairs`); 0: it never can
  bool holds_whole_batch = false;       ///< keeps activations of all micro-batches, so that a longer batch needs more memory

  // What it demands of parallelism.pp and parallelism.vpp
  std::int64_t least_stages = 1;
  std::int64_t stages_multiple_of = 1;
  std::int64_t least_chunks = 1, most_chunks = 1;  ///< model chunks per stage
  std::string_view chunks_expected = {};  ///< the advice where vpp is another: "vpp 2, the two arms of its V"; empty: the
                                          ///< advice is a schedule with several chunks
  std::string_view stages_expected = {};  ///< the advice where pp is no multiple of `stages_multiple_of`

  // What it demands of the number of micro-batches
  std::int64_t micro_batches_multiple_of = 1;
  bool micro_batches_in_rounds = false;  ///< they must be a multiple of pp
  std::int64_t least_micro_batches_per_stage = 0;

  /// What a stage computes, in order.
  std::vector<Action> (*actions)(const PipelineShape& shape) = nullptr;

  bool admits_stages(std::int64_t pp) const { return pp >= least_stages && pp % stages_multiple_of == 0; }
  bool can_pair(std::int64_t pp) const { return pp <= most_stages_paired; }
  bool admits_chunks(std::int64_t vpp) const { return vpp >= least_chunks && vpp <= most_chunks; }
  std::int64_t micro_batch_unit(std::int64_t pp) const { return micro_batches_in_rounds ? pp : micro_batches_multiple_of; }
  std::int64_t least_micro_batches(std::int64_t pp) const { return least_micro_batches_per_stage * pp; }
  bool admits_micro_batches(std::int64_t micro_batches, std::int64_t pp) const {
    return micro_batches % micro_batch_unit(pp) == 0 && micro_batches >= least_micro_batches(pp);
  }
};

/// Every schedule, in the order of `ScheduleKind`.
std::span<const ScheduleTraits> schedule_table();
const ScheduleTraits& traits_of(ScheduleKind kind);
inline std::string_view name_of(ScheduleKind kind) { return traits_of(kind).name; }
/// What TorchTitan calls those that it has.
std::vector<std::string> schedules_of_torchtitan();
/// The schedule of that name, or nullptr.
const ScheduleTraits* schedule_named(std::string_view name);

inline std::vector<Action> schedule(ScheduleKind kind, const PipelineShape& shape) { return traits_of(kind).actions(shape); }

}  // namespace tandem::scenarios
