#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/site.h"
#include "runtime/ops/operation.h"

namespace tandem {

/// One kernel with the operands it is to be timed on.
struct TimedKernel {
  OpKind op = OpKind::gemm;
  std::vector<OperandType> operands;  ///< in the operation's order
  OpAttributes attributes;
};

inline OpCost cost_of(const TimedKernel& kernel) {
  return is_fused(kernel.attributes) ? OpCost{} : operation(kernel.op).cost(kernel.operands, kernel.attributes);
}

/// The times of repeated runs. Caches are as cold as a training step leaves them: no run has the operands of the run before.
struct Timing {
  Seconds median = 0, lowest = 0, highest = 0;
  std::int32_t samples = 0;
  bool operator==(const Timing&) const = default;
};

/// Summarizes at least one sample. The samples are reordered.
Timing timing_of(std::vector<Seconds> samples);

struct MeasuredKernel {
  TimedKernel kernel;
  Timing timing;
};

/// A collective by itself: all members ready at once. A transfer is a `send` of two members.
struct MeasuredCollective {
  OpKind op = OpKind::all_reduce;
  std::int32_t members = 0;
  std::int32_t machines = 1;  ///< that the members lie on, as many of them on each
  Bytes bytes = 0;            ///< counted as `Group::bytes`
  Timing timing;
  bool operator==(const MeasuredCollective&) const = default;
};

/// Says in words where and when a profile was measured.
struct ProfileOrigin {
  std::string backend;       ///< host, cuda
  std::string device;        ///< the CPU's or GPU's name; of several GPUs also how many, and on how many machines
  std::string libraries;     ///< what computed, with versions
  std::string date;          ///< UTC
  std::string tandem;        ///< version of this program
  std::int32_t threads = 0;  ///< that the machine has
};

/// What `tandem calibrate` measured on one model of device, or learnt of a site that has it.
struct Profile {
  ProfileOrigin origin;
  std::vector<MeasuredKernel> kernels;
  std::vector<MeasuredCollective> collectives;
  Site site;
};

/// Says in words what is wrong with a profile that was read from a file. Returns an empty text when every kernel has operands and
/// attributes that its operation takes, and every time is possible.
std::string first_flaw(const Profile& profile);

}  // namespace tandem
