// Tandem's own files in protobuf: a DAG, a timeline, a profile.
#include "runtime/base/text_file.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/fuzz/target.h"
#include "tests/traces/sample.h"
#include "traces/dag_file.h"
#include "traces/profile_file.h"
#include "traces/timeline_file.h"

namespace tandem::fuzz {
namespace {

const traces::Sample& sample() {
  static const traces::Sample two_by_two = traces::pipeline_sample(2, 2, 2);
  return two_by_two;
}

/// What is taken, written and read again is the same.
void read_dag(const std::string& bytes) {
  const std::string written = traces::to_bytes(traces::read_dag(scratch_file("dag", bytes)));
  require(traces::to_bytes(traces::read_dag(scratch_file("dag", written))) == written, "a DAG reads as another one");
}

void read_profile(const std::string& bytes) {
  const std::string written = traces::to_bytes(traces::read_profile_file(scratch_file("profile", bytes)));
  require(traces::to_bytes(traces::read_profile_file(scratch_file("profile", written))) == written,
          "a profile reads as another one");
}

Profile small_profile() {
  const TimedKernel gemm{OpKind::gemm,
                         {{Shape(128, 256), DType::bf16}, {Shape(512, 256), DType::bf16}, {Shape(128, 512), DType::bf16}},
                         GemmAttributes{.transpose_b = true}};
  return {
      .origin = {.backend = "host", .device = "a CPU", .libraries = "none", .date = "2026-01-01", .tandem = "0.1", .threads = 2},
      .kernels = {{gemm, {1e-5, 0.9e-5, 2e-5, 5}}},
      .collectives = {{OpKind::all_reduce, 8, 1, 1 << 20, {1e-4, 1e-4, 2e-4, 3}}},
      .site = {}};
}

[[maybe_unused]] const Registered own_files({
    {.name = "dag",
     .read = read_dag,
     .seeds =
         [] {
           return std::vector{traces::to_bytes(sample().dag), traces::to_bytes(traces::pipeline_sample(1, 1, 1).dag)};
         },
     .mutate = mutate_own_file},
    {.name = "timeline",
     .read = [](const std::string& bytes) { traces::read_timeline(scratch_file("timeline", bytes), sample().dag); },
     .seeds =
         [] {
           return std::vector{traces::to_bytes(sample().dag, {sample().timeline, "a test"})};
         },
     .mutate = mutate_own_file},
    {.name = "profile",
     .read = read_profile,
     .seeds = [] { return std::vector{traces::to_bytes(small_profile())}; },
     .mutate = mutate_own_file},
});

}  // namespace
}  // namespace tandem::fuzz
