#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/dag/dag.h"
#include "sim/rank_spans.h"

namespace tandem::sim {

/// The deviation of work that comes from the speed of a class of ranks, which lasts through the step.
struct LastingDeviation {
  RankIndex rank = 0;
  Seconds deviation = 0;  ///< of the sum, to which those of one rank add up in proportion
};

/// One part of what the end of a task is early or late by: of the work that all ranks of a span have in common.
struct LatePart {
  SpanId span = RankSpans::one;
  Seconds undisturbed = 0;     ///< the work
  Seconds own = 0;             ///< excess of the simulated member
  Seconds mean = 0;            ///< expected excess of any
  double variance = 0;         ///< without what lasts
  RankIndex rank = no_id;      ///< the class that worked; no_id: communication alone
  bool is_of_several = false;  ///< classes
};

/// Adds all but what lasts. The span stays.
void add(LatePart& to, const LatePart& other);
/// Adds what lasts.
void add(std::vector<LastingDeviation>& to, std::span<const LastingDeviation> other);

/// What the end of a task is early or late by, as a sum of parts.
class LateHistory {
 public:
  Seconds base = 0;  ///< what the work began late by

  void clear();
  std::size_t size() const { return parts_.size(); }
  /// The spans of parts are distinct, the smallest comes first.
  const LatePart& part(std::size_t at) const { return parts_[at].numbers; }
  std::span<const LastingDeviation> lasting(std::size_t at) const;
  /// Puts a part behind all others.
  void append(const LatePart& part, std::span<const LastingDeviation> lasting);
  /// Adds to the part of `part.span`.
  void add(const LatePart& part, std::span<const LastingDeviation> lasting, const RankSpans& spans);

 private:
  struct Stored {
    LatePart numbers;
    std::uint32_t lasting_end = 0;  ///< in `lasting_`, where the deviations of this part end and those of the next one begin
  };
  std::vector<Stored> parts_;
  std::vector<LastingDeviation> lasting_;  ///< of all parts
};

/// Holds histories that tasks share, and uses again the memory of those that nobody holds any more.
class LateHistories {
  struct Shared {
    LateHistory history;
    std::uint32_t holders = 0;
    LateHistories* home = nullptr;
  };

 public:
  /// Holds a history, or none. Must not outlive where that comes from.
  class Holder {
   public:
    Holder() = default;
    Holder(const Holder& other) : shared_(other.shared_) {
      if (shared_ != nullptr) ++shared_->holders;
    }
    Holder(Holder&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
    Holder& operator=(Holder other) noexcept {
      std::swap(shared_, other.shared_);
      return *this;
    }
    ~Holder() {
      if (shared_ != nullptr && --shared_->holders == 0) shared_->home->free_.push_back(shared_);
    }

    explicit operator bool() const { return shared_ != nullptr; }
    const LateHistory& operator*() const { return shared_->history; }
    const LateHistory* operator->() const { return &shared_->history; }

   private:
    friend class LateHistories;
    explicit Holder(Shared* shared) : shared_(shared) { ++shared_->holders; }
    Shared* shared_ = nullptr;
  };

  LateHistories() = default;
  LateHistories(const LateHistories&) = delete;
  LateHistories& operator=(const LateHistories&) = delete;

  /// Returns a history to change, which `holder` alone holds: its own, a copy where others hold it, too, an empty one where it
  /// has none.
  LateHistory& own(Holder& holder);
  Holder copy_of(const LateHistory& history);

 private:
  std::vector<std::unique_ptr<Shared>> all_;
  std::vector<Shared*> free_;

  Holder any();
};

}  // namespace tandem::sim
