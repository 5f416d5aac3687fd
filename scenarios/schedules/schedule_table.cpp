#include "scenarios/schedules/schedule_table.h"

#include <algorithm>
#include <array>
#include <limits>

#include "scenarios/spec/limits.h"

namespace tandem::scenarios {
namespace {

constexpr std::int64_t any_stages = std::numeric_limits<std::int64_t>::max();

constexpr std::array table{
    ScheduleTraits{.kind = ScheduleKind::gpipe,
                   .name = "gpipe",
                   .elsewhere = "afab",
                   .torchtitan = "GPipe",
                   .holds_whole_batch = true,
                   .actions = gpipe},
    ScheduleTraits{.kind = ScheduleKind::one_f_one_b,
                   .name = "1f1b",
                   .megatron = "1F1B",
                   .torchtitan = "1F1B",
                   .most_stages_paired = 1,
                   .actions = one_f_one_b},
    ScheduleTraits{.kind = ScheduleKind::interleaved,
                   .name = "interleaved-1f1b",
                   .megatron = "interleaved 1F1B",
                   .torchtitan = "Interleaved1F1B",
                   .most_stages_paired = any_stages,
                   .least_stages = 2,
                   .least_chunks = 2,
                   .most_chunks = max_layers,
                   .chunks_expected = "vpp 2 or more, or schedule 1f1b",
                   .micro_batches_in_rounds = true,
                   .actions = interleaved_one_f_one_b},
    ScheduleTraits{.kind = ScheduleKind::zero_bubble_h1, .name = "zb-h1", .splits_backward = true, .actions = zero_bubble_h1},
    ScheduleTraits{.kind = ScheduleKind::zero_bubble_v,
                   .name = "zb-v",
                   .torchtitan = "ZBVZeroBubble",
                   .path = ChunkPath::v,
                   .splits_backward = true,
                   .least_stages = 2,
                   .least_chunks = 2,
                   .most_chunks = 2,
                   .chunks_expected = "vpp 2, the two arms of its V",
                   .actions = zero_bubble_v},
    ScheduleTraits{.kind = ScheduleKind::dualpipe,
                   .name = "dualpipe",
                   .path = ChunkPath::mirrored,
                   .splits_backward = true,
                   .pairs_passes = true,
                   .most_stages_paired = any_stages,
                   .least_stages = 2,
                   .stages_multiple_of = 2,
                   .chunks_expected = "vpp 1: it holds two chunks of two copies of the model by itself",
                   .stages_expected = "an even number of stages, each the mirror of another",
                   .micro_batches_multiple_of = 2,
                   .least_micro_batches_per_stage = 2,
                   .actions = dualpipe},
};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].kind != static_cast<ScheduleKind>(i)) return false;
  return true;
}
static_assert(is_in_order());

}  // namespace

std::span<const ScheduleTraits> schedule_table() { return table; }

const ScheduleTraits& traits_of(ScheduleKind kind) { return table.at(static_cast<std::size_t>(kind)); }

std::vector<std::string> schedules_of_torchtitan() {
  std::vector<std::string> names;
  for (const ScheduleTraits& traits : table)
    if (!traits.torchtitan.empty()) names.emplace_back(traits.torchtitan);
  return names;
}

const ScheduleTraits* schedule_named(std::string_view name) {
  const auto* const found = std::ranges::find(table, name, &ScheduleTraits::name);
  return found == table.end() ? nullptr : found;
}

}  // namespace tandem::scenarios
