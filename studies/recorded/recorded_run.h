#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/dag/dag.h"

namespace tandem::studies {

/// A task of a step that was recorded, as its rank ran it.
struct RecordedTask {
  enum class Kind : std::uint8_t {
    kernel,
    on_host,
    from_host,  ///< a copy, or whatever else brings data to the GPU
    to_host,
    exchange  ///< a collective or transfer
  };
  Kind kind = Kind::kernel;
  Seconds time = 0;        ///< as recorded; an exchange takes what its links let it
  std::uint32_t name = 0;  ///< index into `RecordedRun::names`
  Phase phase = Phase::forward;
  std::vector<std::uint32_t> after = {};  ///< earlier tasks of the rank that have ended before this one starts

  // of an exchange
  OpKind op = OpKind::all_reduce;
  std::uint32_t slot = 0;    ///< index into `RecordedRank::groups`
  std::uint32_t call = 0;    ///< which of those that the group exchanges; all members count alike
  Bytes bytes = 0;           ///< as `Group::bytes`
  std::int64_t stream = -1;  ///< exchanges of a rank on one stream run one after the other; -1: on a stream of their group

  /// Whatever they are called.
  bool does_the_same(const RecordedTask& other) const {
    return kind == other.kind && time == other.time && phase == other.phase && after == other.after && op == other.op &&
           slot == other.slot && call == other.call && bytes == other.bytes && stream == other.stream;
  }
};

/// Ranks that exchange something, in one way: sends and receives of a pair, all-to-alls and the other collectives of a group lie
/// on the links in ways of their own.
struct RecordedGroup {
  enum class Way : std::uint8_t {
    ring,     ///< for collectives of which NCCL has rings alone
    choice,   ///< where something is all-reduced, for which NCCL has other algorithms, too
    latency,  ///< messages too small to take bandwidth from anybody
    all_to_all,
    pair  ///< {source, destination}
  };
  std::string name;
  Axis axis = Axis::none;
  Way way = Way::ring;
  std::vector<std::uint32_t> members;  ///< world ranks, in ring order
};

struct RecordedRank {
  std::uint32_t program = 0;          ///< index into `RecordedRun::programs`
  std::vector<std::uint32_t> groups;  ///< by slot: index into `RecordedRun::groups`
};

/// A step of all ranks that was recorded: kernels with their times, exchanges with their sizes. Ranks that did the same share a
/// program.
struct RecordedRun {
  std::string name;
  std::vector<std::string> names = {};  ///< of tasks
  std::vector<std::vector<RecordedTask>> programs = {};
  std::vector<RecordedGroup> groups = {};
  std::vector<RecordedRank> ranks = {};  ///< by world rank

  std::size_t tasks() const {
    std::size_t sum = 0;
    for (const RecordedRank& rank : ranks) sum += programs[rank.program].size();
    return sum;
  }
};

}  // namespace tandem::studies
