#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "runtime/analysis/time_parts.h"
#include "studies/kineto/kernel_names.h"
#include "studies/kineto/kineto_file.h"

namespace tandem::studies {

/// One kernel, copy or collective of a measured step; times count from the step's beginning.
struct RankTask {
  KernelFamily family = KernelFamily::others;
  std::optional<OpKind> collective;  ///< of communication, where it is known
  Axis axis = Axis::none;            ///< of communication; `none` where nobody knows
  std::optional<Phase> phase;
  Seconds start = 0, end = 0;
  std::size_t kernel = 0;    ///< index into the trace's
  std::string kind() const;  ///< "matrix products", "all_reduce (tp)", "all_reduce" where the axis is not known
};

/// One step of one rank out of a trace. On a GPU a step lasts from the first kernel that was issued in its `ProfilerStep` to the
/// first of the next one, or to its own last kernel; a trace without iterations is one step.
struct RankStep {
  std::optional<std::uint32_t> rank;
  std::string name;  ///< "ProfilerStep#5"; empty: all of the trace
  Seconds time = 0;
  std::vector<RankTask> tasks;  ///< by start
};

/// Returns the step of a trace called `ProfilerStep#number`; without a number the one whose time is the median of all that end
/// where another begins, or where there is none the longest. Throws InputError where the trace has no such step, with those that
/// it has, or where a step has no kernel.
RankStep step_of(const KinetoTrace& trace, std::optional<std::int64_t> number);

/// Where the time of a measured step goes; the parts add up to its time. While a kernel runs it is compute, by phase, or the
/// optimizer's; while communication runs and no kernel does, it is exposed on the axis of what runs last to its end; else nothing
/// runs: bubble. A rank's communication begins when the rank is there, so that what it waits for others counts as exposed.
/// `exposed[Axis::none]` is that of communication whose axis is not known; copies count as nothing.
TimeParts parts_of(const RankStep& step);

/// All tasks of one kind.
struct KindSum {
  std::string name;
  std::size_t count = 0;
  Seconds time = 0;  ///< added up, overlapped or not
};

/// Most time first.
std::vector<KindSum> kinds_of(const RankStep& step);

/// The names of the kernels of a family that take most time, with their time in the step; templates' arguments are cut off.
std::vector<KindSum> largest_kernels(const KinetoTrace& trace, const RankStep& step, KernelFamily family, std::size_t most);

/// What `tandem import --from kineto` writes: see docs/json.md.
nlohmann::ordered_json to_json_object(const std::vector<KinetoTrace>& traces, const std::vector<RankStep>& steps);

}  // namespace tandem::studies
