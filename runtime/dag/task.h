#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/dag/axis.h"
#include "runtime/dag/ids.h"
#include "runtime/dag/software.h"
#include "runtime/ops/operation.h"

namespace tandem {

enum class Phase : std::uint8_t {
  forward,
  backward_input,
  backward_weight,
  recompute,
  optimizer
};
constexpr Pass pass_of(Phase phase) {
  constexpr Pass passes[] = {Pass::forward, Pass::backward, Pass::weights, Pass::forward, Pass::optimizer};
  return passes[static_cast<std::size_t>(phase)];
}
/// A rank's streams. Tasks of one stream run one after the other in the order they were lowered.
enum class Stream : std::uint8_t {
  compute,
  tp,
  tp_receive,
  cp,
  cp_receive,
  ep,
  dp,
  pp_send_forward,
  pp_receive_forward,
  pp_send_backward,
  pp_receive_backward,
  // of model chunks whose forwards go from higher stages to lower ones
  pp_send_forward_descending,
  pp_receive_forward_descending,
  pp_send_backward_descending,
  pp_receive_backward_descending,
  // between the GPU and its host, and what the host computes
  to_host,
  host,
  from_host,
};
inline constexpr std::size_t stream_count = static_cast<std::size_t>(Stream::from_host) + 1;

std::string_view name_of(Phase phase);
std::string_view name_of(Stream stream);

enum class Access : std::uint8_t {
  read,
  write,
  update
};

struct Operand {
  BufferId buffer : 30;
  std::uint32_t access_bits : 2;
  Access access() const { return static_cast<Access>(access_bits); }
};

inline constexpr std::size_t most_operands = 12;  ///< of a task

struct Task {
  OpKind op = OpKind::gemm;
  Phase phase = Phase::forward;
  Axis axis = Axis::none;
  Stream stream = Stream::compute;
  RankIndex rank = 0;
  std::uint32_t first_operand = 0;
  std::uint32_t attributes = 0;  ///< index into `Dag::attributes`
  GroupId group = no_id;         ///< the collective this task is a member of
  std::int32_t micro_batch = -1;
  std::int16_t layer = -1;  ///< -1: belongs to no layer
  std::int16_t chunk = -1;  ///< model chunk on this rank
  std::uint16_t name = 0;   ///< index into `Dag::names`
  KernelId kernel = no_id;  ///< that it runs, see `Dag::first_of_kernel`; `no_id` for communication

  bool operator==(const Task&) const = default;
};

}  // namespace tandem
