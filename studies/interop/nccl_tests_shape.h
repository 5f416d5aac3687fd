#pragma once

#include <cstdint>
#include <string>

#include "studies/interop/import_source.h"
#include "studies/interop/nccl_tests.h"

namespace tandem::studies {

/// A run with what was found out about it.
struct ReadRun {
  NcclTestRun run;
  const NcclTestCollective* collective = nullptr;
  std::int64_t members = 0, machines = 0;
};

/// Finds out what a run of `file` measured, among how many GPUs on how many machines, by what it prints, by `--gpus` and
/// `--cluster` of the request, and last by what is usual; adds to `result` what was assumed. Throws InputError where nothing
/// tells, and where the bandwidths of a row do not agree with its time and with the collective.
ReadRun shape_of_run(NcclTestRun run, const std::string& file, const ImportRequest& request, ImportResult& result);

}  // namespace tandem::studies
