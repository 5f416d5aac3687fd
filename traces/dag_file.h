#pragma once

#include <string>

#include "runtime/dag/dag.h"
#include "traces/output_file.h"

namespace tandem::traces {

/// Returns the whole DAG as bytes, some 40 a task (dag.proto, fields.h); equal DAGs give equal bytes.
std::string to_bytes(const Dag& dag);

/// Whether the file at `path` begins as DAGs do; false where it cannot be read.
bool is_dag_file(const std::string& path);

/// Reads what `to_bytes` wrote to the file, with the edges in their order, and checks every id (`first_flaw`). Throws InputError,
/// exit code 2, for any other file.
Dag read_dag(const std::string& path);

}  // namespace tandem::traces
