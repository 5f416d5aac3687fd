// A profile as people read it.
#include "scenarios/reading/profile_yaml.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/tree_mutator.h"

namespace tandem::fuzz {
namespace {

constexpr const char* profile_for_people =
    R"(machine: {backend: host, device: a CPU, libraries: none, date: 2026-01-01, tandem: 0.1, threads: 2}
kernels:
  - "gemm bf16[128,256] bf16[512,256] bf16[128,512] | gemm 0 1 0 = 10 9 20 5"
collectives:
  - "all_reduce 8 1048576 = 100 100 200 3"
  - "all_gather 16 1048576 on 2 = 100 100 200 3"
)";

[[maybe_unused]] const Registered profile_yaml({
    {.name = "profile-yaml",
     .read = [](const std::string& bytes) { scenarios::profile_of_yaml(bytes, "input.yaml"); },
     .seeds = [] { return std::vector<std::string>{profile_for_people}; },
     .words_of = {"scenarios/reading/profile_yaml.cpp", "traces/kernel_text.cpp"},
     .mutate = mutate_yaml},
});

}  // namespace
}  // namespace tandem::fuzz
