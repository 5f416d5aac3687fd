#pragma once

#include <map>
#include <string>

#include "runtime/dag/dag.h"

namespace tandem::studies {

/// How often something is communicated, and the bytes of it (`Group::bytes`: the whole vector of a collective, a send's payload).
struct Volume {
  std::size_t count = 0;
  Bytes bytes = 0;
  bool operator==(const Volume&) const = default;
};

/// What one lowered rank communicates in a step, by "operation axis phase": "all_reduce tp forward".
std::map<std::string, Volume> volumes_of(const Dag& dag, RankIndex rank);

}  // namespace tandem::studies
