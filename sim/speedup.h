#pragma once

#include <string>
#include <variant>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::sim {

/// The ranks of one pipeline stage, by their coordinate, or of two that mirror each other.
struct PipelineStage {
  std::int32_t number = 0;
  std::int32_t mirror = number;

  bool holds(std::int32_t stage) const { return stage == number || stage == mirror; }
  bool operator==(const PipelineStage&) const = default;
};

/// One thing of a step `factor` times as fast as it is, for a simulation to be asked what that would gain:
///
///   an operation   its kernels, of all phases, take 1 / factor of their time, launch included
///   an axis        its collectives have 1 / factor of their latency and bytes
///   a tier         its links carry factor times as much. Latencies stay, and with them what a ring loses because its messages
///                  wait for each other; so do the algorithms and protocols that were chosen. Where a protocol is held to a share
///                  of what the links of its path carry, the share is one of the wider links.
///   a stage        all kernels of its ranks take 1 / factor of their time
///
/// Whatever nothing is changed of, or by a factor of 1, keeps its numbers to the last bit.
struct Speedup {
  std::variant<std::monostate, OpKind, Axis, Tier, PipelineStage> of;
  double factor = 1;

  // How many times as fast a thing is.
  double of_operation(OpKind op) const { return factor_if(op); }
  double of_stage(std::int32_t number) const {
    const PipelineStage* stage = std::get_if<PipelineStage>(&of);
    return stage != nullptr && stage->holds(number) ? factor : 1;
  }
  double of_collectives(Axis axis) const { return factor_if(axis); }
  double of_links(Tier tier) const { return factor_if(tier); }
  bool widens_links() const { return std::holds_alternative<Tier>(of); }

  /// Returns "kernel", "axis", "tier", "stage", or "none" for no speedup.
  std::string_view group() const;
  /// Returns a name such as "gemm", "tp", "nic", "stage 3", "stages 3 and 12".
  std::string name() const;

 private:
  template <typename Thing>
  double factor_if(const Thing& thing) const {
    const Thing* mine = std::get_if<Thing>(&of);
    return mine != nullptr && *mine == thing ? factor : 1;
  }
};

std::vector<Link> faster_links(std::vector<Link> links, const Speedup& speedup);

/// Returns `bytes` / `times`, to the nearest byte: what takes as long at the usual pace as `bytes` take when moved `times` as
/// fast. Exact for 1.
Bytes at_pace(Bytes bytes, double times);

}  // namespace tandem::sim
