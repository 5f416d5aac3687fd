#pragma once

#include <string>

#include "studies/diff/difference.h"

namespace tandem::studies {

/// Returns what changed from the file `a` to the file `b`, each a JSON result, traces of torch.profiler, or a timeline that
/// tandem-run wrote. Beside traces a result is told in their words: families of kernels, communication of no axis. `dag` is the
/// file of the timelines' DAG, which `tandem lower` wrote; empty where there is none. Throws InputError, also for a timeline
/// without its DAG and a DAG without a timeline.
ResultDifference difference_of_files(const std::string& a, const std::string& b, const std::string& dag);

}  // namespace tandem::studies
