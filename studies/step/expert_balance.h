#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/units.h"
#include "runtime/dag/dag.h"

namespace tandem::studies {

/// How the choices of tokens that are routed together spread over the experts of a layer, where that is known before the step:
/// under a load that is given, or where experts choose. It is the same for every layer, micro-batch and rank.
struct ExpertBalance {
  bool expert_choice = false;
  std::int64_t tokens = 0;                     ///< that are routed together: a rank's part of a micro-batch
  std::vector<std::int32_t> choices = {};      ///< by expert, before any is dropped
  std::vector<std::int32_t> slots = {};        ///< by expert
  std::optional<Seconds> safe_step_time = {};  ///< of the step with the capacity factor `safe_capacity_factor`, where simulated

  std::int64_t all_choices() const;
  /// By expert: what exceeds its slots.
  std::vector<std::int32_t> dropped() const;
  std::int64_t all_dropped() const;
  double dropped_share() const { return static_cast<double>(all_dropped()) / static_cast<double>(all_choices()); }
  /// Choices of the busiest expert over the even share, choices / experts: with f times the even share as its slots, an expert
  /// drops nothing from this f on.
  double safe_capacity_factor() const;
  /// Under expert choice: the share of tokens that no expert takes if each chooses at random, the product over all experts of
  /// 1 - slots / tokens.
  double untaken_share() const;
};

ExpertBalance balance_of(const RoutingAttributes& routing, std::int64_t tokens);

/// Returns nothing where tokens go where their numbers send them, and where all experts get as many within one.
std::optional<ExpertBalance> expert_balance(const Dag& dag);

}  // namespace tandem::studies
