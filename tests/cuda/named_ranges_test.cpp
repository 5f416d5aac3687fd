// The ranges that a step shows to Nsight Systems, as NVTX hands them to a tool: by the pointer below, which it looks for first of
// all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/module/gpu_step.h"
#include "runtime/executor.h"
#include "tests/cuda/step_support.h"

namespace tandem::studies::named_ranges_test {
namespace {

struct Ranges {
  std::set<std::string> names;
  int open = 0;
};
Ranges& ranges() {
  static Ranges all;
  return all;
}

int push(const char* name) {
  ranges().names.insert(name);
  return ranges().open++;
}
int pop() { return --ranges().open; }

int be_the_tool(NvtxGetExportTableFunc_t export_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &size) == 0) return 0;
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(pop);
  return 1;
}

/// Before main: NVTX looks for its tool once, when the first range of the process begins.
[[maybe_unused]] const NvtxInitializeInjectionNvtxFunc_t tool = InitializeInjectionNvtx2_fnptr = be_the_tool;

// Each unit is issued within a range that has the name of the task, and ranges do not overlap.
TEST(NamedRanges, AreThoseOfTheTasks) {
  const Dag dag = dag_of({"model.layers=2 parallelism.tp=2 parallelism.sp=true training.global_batch=2"});
  const auto gpu = make_gpu_step(dag, {}, 4);
  gpu->fill(data_seed);
  ranges() = {};
  execute(dag, *gpu);
  std::set<std::string> expected;
  for (TaskId id = 0; id < dag.tasks.size(); ++id) expected.insert(std::string(dag.name_of_task(dag.unit_of(id).front())));
  EXPECT_EQ(ranges().names, expected);
  EXPECT_EQ(ranges().open, 0);
}

}  // namespace
}  // namespace tandem::studies::named_ranges_test
