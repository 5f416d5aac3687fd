#pragma once

#include <string>

#include "studies/step/step_result.h"

namespace tandem::studies {

/// Whether traces of torch.profiler lie at the path: a folder, a compressed file, or JSON with `traceEvents`.
bool holds_kineto_traces(const std::string& path);

/// A typical step of each traced rank as a result, to be compared with others: the mean over the ranks. Kinds are families of
/// kernels and collectives of no axis, whose exposed time is of no axis either; phases are forward, backward (as
/// `backward_input`) and the optimizer. Of tokens, memory and the model it tells nothing. Throws InputError as
/// `read_kineto_traces` does.
StepResult traced_result(const std::string& path);

/// Whether a result is one of these.
bool is_traced(const StepResult& result);

/// The result in the same words, so that it can be compared with a traced one.
StepResult in_words_of_traces(StepResult result);

}  // namespace tandem::studies
