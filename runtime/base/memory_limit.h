#pragma once

#include <string>

#include "runtime/base/units.h"

namespace tandem {

// How much memory a process of Tandem may take. The system keeps the number with the process (RLIMIT_RSS, which Linux stores and
// does nothing about), and hands it on to its children: `--max-memory` and `ulimit -m` are the same.

/// Says what this process and its children may take, each.
void limit_memory(Bytes bytes);

/// Returns that; where nobody has said, what is free: of the machine, or of the control group that the process is in.
Bytes memory_limit();

/// Has the system refuse this process, and its children, what goes beyond the limit: allocations then throw std::bad_alloc. For
/// processes with few threads, as their stacks count in full. Does nothing under sanitizers, whose shadow memory counts, too.
void enforce_memory_limit();

/// Returns "it needs more than 2.00 GB of memory; expected ..., --max-memory ..."; for a process that ran into it.
std::string beyond_memory_limit_sentence();

/// Reads free memory as Linux tells it, in kB: of /proc/meminfo. 0 where there is none.
Bytes available_in(const std::string& meminfo);

/// Reads what a control group leaves: of memory.max ("max" or bytes), memory.current and memory.stat, whose inactive file pages
/// are given back on demand. Negative where it sets no limit.
Bytes left_in_group(const std::string& max, const std::string& current, const std::string& stat);

}  // namespace tandem
