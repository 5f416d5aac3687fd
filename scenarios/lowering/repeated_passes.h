#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/dag/access_order.h"
#include "scenarios/lowering/context.h"
#include "scenarios/lowering/pipeline.h"
#include "scenarios/lowering/turns.h"
#include "scenarios/schedules/schedule.h"

namespace tandem::scenarios {

/// The passes of a rank's step. Most do what one before them did for another micro-batch: these are copied, task by task, with
/// other buffers in place of the micro-batch's own, which costs a fraction of lowering them.
///
/// Passes are of one kind where they are the same action of the same chunk, are both lowered in turns with another or both not,
/// and what their micro-batches did before is of the same kinds, so that what they read of it has the same numbers there. A
/// chunk's first passes, which cast its weights, are kinds of their own. Of each kind the first two are lowered, and so is
/// whatever these micro-batches did before, since that leaves a tape for the backward. Where the two differ in anything but which
/// buffers of their micro-batch they name, PassesDiffer is thrown; the others are copies of the second.
class RepeatedPasses {
 public:
  /// All stay where they are. Returns nothing where no pass is to be copied, as where micro-batches differ in more than their
  /// tokens.
  static std::unique_ptr<RepeatedPasses> among(Context& context, PipelineLink& link, std::span<const Action> actions);
  RepeatedPasses(const RepeatedPasses&) = delete;

  /// Returns action number `action` as a copy; nothing where it is to be lowered.
  std::unique_ptr<PassInTurns> copy_of(std::size_t action);
  /// Returns the notes to take when it is lowered.
  PassNotes& notes_of(std::size_t action) { return passes_[action].notes; }
  /// To be called when all actions so far have been lowered or copied, of which `last` is the last.
  void look_at(std::size_t last);

 private:
  class Copy;

  /// A buffer that a pass names: of itself, of what its micro-batch did before, or the same for all passes.
  struct Place {
    std::uint32_t of = 0;  ///< `every`, `own`, or `earlier` and later: the micro-batch's passes in their order
    std::uint32_t number = 0;
    bool operator==(const Place&) const = default;
  };
  static constexpr std::uint32_t every = 0, own = 1, earlier = 2;

  /// A task of a pass, likewise: its own, or an earlier one's.
  using TaskPlace = Place;
  /// What one of its tasks does to the buffers of its micro-batch alone.
  struct TaskOrder {
    std::uint32_t operands = 0;  ///< a bit for each that is one of these
    std::size_t waits_end = 0;   ///< in `Original::waits`
  };

  struct Pass {
    std::size_t before = 0;  ///< passes of the micro-batch
    std::uint32_t kind = 0;
    bool is_copied = false;
    PassNotes notes;  ///< of a copy: its tasks and buffers alone
  };
  struct Input {
    Place buffer;
    std::int64_t sequence = 0;  ///< its first, counted from the micro-batch's first
    bool operator==(const Input&) const = default;
  };
  /// A lowered pass, of which others are copies.
  struct Original {
    std::size_t action = 0;
    std::vector<Place> bases;     ///< by buffer
    std::vector<Place> operands;  ///< of all tasks, one after the other
    std::vector<Input> inputs;
    std::vector<TaskOrder> orders;  ///< by task
    std::vector<TaskPlace> waits;   ///< of all tasks, one after the other
  };
  /// Which buffer of which pass an id is.
  struct Made {
    std::uint32_t action = 0;
    std::uint32_t number = no_id;  ///< no_id: of none that was lowered
  };
  struct Kind {
    std::size_t passes = 0;
    bool has_copies = false;
    std::size_t lowered = 0;  ///< so far
    std::optional<Original> original;
  };

  /// What the passes of a micro-batch do to its buffers: the first of them, as many as an original was among.
  struct Accesses {
    AccessOrder order;
    std::vector<std::size_t> first;  ///< by pass, its first buffer's number in `order`
    std::size_t buffers = 0;
  };

  Context& context_;
  PipelineLink& link_;
  std::span<const Action> actions_;
  std::vector<Pass> passes_;                              ///< by action
  std::vector<std::vector<std::size_t>> of_micro_batch_;  ///< its passes, in their order
  std::vector<Kind> kinds_;
  std::vector<Made> made_;                     ///< by buffer
  std::map<std::int32_t, Accesses> accesses_;  ///< by micro-batch
  std::size_t looked_at_ = 0;

  RepeatedPasses(Context& context, PipelineLink& link, std::span<const Action> actions);
  void find_kinds();
  void choose_copied();
  /// Returns what passes of the micro-batch have noted under `Place::of`.
  template <typename Id>
  std::vector<const std::vector<Id>*> by_place(std::size_t action, std::vector<Id> PassNotes::*noted) const;
  Place place_of(BufferId buffer, std::size_t action) const;
  void note_what_was_made(std::size_t action);
  Original original_of(std::size_t action) const;
  void find_orders(Original& original);
  bool are_alike(const Original& one, const Original& other) const;
  std::int64_t sequence_of(std::size_t action) const;
};

}  // namespace tandem::scenarios
