// A DAG as a file: what is read is what was written, and whatever else is found there is refused in a sentence.
#include "traces/dag_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "runtime/base/input_error.h"
#include "runtime/dag/check_dag.h"
#include "scenarios/lowering/lower.h"
#include "scenarios/mesh/world.h"
#include "scenarios/reading/load.h"
#include "sim/simulate.h"
#include "tests/end_to_end/same_dag.h"
#include "tests/runtime/temporary_folder.h"
#include "tests/traces/damaged_file.h"
#include "traces/dag.pb.h"
#include "traces/tables.h"
#include "traces/timeline_file.h"

namespace tandem::studies::dag_file_test {
namespace {

using testing::HasSubstr;

Scenario tiny(const std::string& overrides) {
  std::istringstream in(overrides);
  return parse_scenario(
      "{name: tiny, cluster: {preset: dgx-h100}, parallelism: {dp: 1},\n"
      " model: {layers: 4, hidden: 32, heads: 8, kv_heads: 4, head_dim: 4, ffn: 48, gated: true, vocab: 96, norm: rms},\n"
      " training: {sequence: 16, micro_batch: 1, global_batch: 8, precision: fp32, schedule: 1f1b}}",
      "tiny.yaml", {std::istream_iterator<std::string>(in), {}});
}

Dag lowered(const std::string& overrides, Detail detail = Detail::sums) {
  const Scenario scenario = tiny(overrides);
  return lower(scenario, make_world(scenario, false, {.detail = detail}), period_of(scenario));
}

Dag small() { return lowered("model.layers=1 training.global_batch=1"); }

Dag written_and_read(const Dag& dag) {
  const TemporaryFolder folder;
  write_bytes(folder / "step.dag", to_bytes(dag));
  return read_dag(folder / "step.dag");
}

class DagFile : public testing::TestWithParam<std::string> {};

TEST_P(DagFile, HoldsTheWholeDag) {
  const Dag dag = lowered(GetParam());
  ASSERT_EQ(first_flaw(dag), "");
  const Dag read = written_and_read(dag);
  expect_same(dag, read);
  EXPECT_TRUE(to_bytes(dag) == to_bytes(read));
  const Timeline before = simulate(dag).timeline, after = simulate(read).timeline;
  EXPECT_GT(before.makespan(), 0);
  EXPECT_EQ(before.start, after.start);
  EXPECT_EQ(before.end, after.end);
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, DagFile,
    testing::Values("parallelism.tp=2 parallelism.sp=true parallelism.pp=2 parallelism.dp=2 parallelism.zero=1",
                    "parallelism.dp=4 parallelism.zero=3 training.recompute=full training.precision=bf16",
                    "parallelism.cp=2 parallelism.dp=2 model.norm=layer",
                    "model.moe.experts=8 model.moe.top_k=2 model.moe.ffn=24 parallelism.dp=4 parallelism.ep=4",
                    "model.kv_heads=8 model.mla.q_rank=12 model.mla.kv_rank=16 model.mla.rope_dim=4 model.mla.nope_dim=6 "
                    "model.mla.v_dim=5 parallelism.dp=2",
                    "parallelism.pp=2 parallelism.vpp=2 training.schedule=interleaved-1f1b",
                    "parallelism.pp=2 parallelism.dp=2 training.schedule=zb-h1 faults.slow_gpu.rank=1 faults.slow_gpu.factor=0.5",
                    "parallelism.dp=2 parallelism.zero=0 training.sync_every=3"));

TEST(DagFile, HoldsHopsAndFoldedRanks) {
  const Dag hops = lowered("parallelism.tp=2 parallelism.dp=16 training.global_batch=16", Detail::hops);
  const auto has_hops = [](const Communicator& c) { return !c.layout.paths.front().hops.empty(); };
  ASSERT_TRUE(std::ranges::any_of(hops.communicators, has_hops));
  expect_same(hops, written_and_read(hops));
  const Scenario scenario = tiny("parallelism.dp=8");
  const Dag folded = lower(scenario, make_world(scenario, true));
  ASSERT_GT(folded.ranks.front().count, 1U);
  expect_same(folded, written_and_read(folded));
}

TEST(DagFile, IsCompact) {
  const Dag dag = lowered("parallelism.tp=2 parallelism.pp=2 parallelism.dp=2");
  EXPECT_LT(to_bytes(dag).size(), 60 * dag.tasks.size());
}

/// What `read` says of a file with these bytes; empty when it takes them.
std::string refusal(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder / "step.dag";
  write_bytes(path, bytes);
  try {
    EXPECT_TRUE(to_bytes(read_dag(path)) == bytes);
    return "";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(path + ": "));
    EXPECT_THAT(error.what(), HasSubstr("tandem lower --out"));
    return error.what();
  }
}

TEST(DagFile, RefusesOtherFiles) {
  EXPECT_THAT(refusal(""), HasSubstr("is no tandem-dag file"));
  EXPECT_THAT(refusal("model: {layers: 4}\n"), HasSubstr("is no tandem-dag file"));
  EXPECT_THAT(refusal(to_bytes(small(), MeasuredTimeline{})), HasSubstr("is no tandem-dag file"));
  file::File file;
  ASSERT_TRUE(file.ParseFromString(to_bytes(small())));
  file.set_version(file.version() + 1);
  EXPECT_THAT(refusal(file.SerializeAsString()), HasSubstr("is of version 21, this tandem reads version 20"));
  EXPECT_THROW(read_dag("/no/such/file"), InputError);
  EXPECT_THROW(read_dag("/tmp"), InputError);
}

TEST(DagFile, RefusesEveryTruncationAndFlippedBit) { expect_damage_is_refused(to_bytes(small()), 97, refusal); }

TEST(DagFile, SurvivesAnyContentThatIsSealed) {
  const std::string bytes = to_bytes(small());
  ASSERT_EQ(refusal(resealed(bytes, content_of(bytes))), "");
  const TemporaryFolder folder;
  const Sealed found = try_sealed_contents(bytes, 500, [&](const std::string& changed) {
    write_bytes(folder / "step.dag", changed);
    try {
      EXPECT_EQ(first_flaw(read_dag(folder / "step.dag")), "");
      return true;
    } catch (const InputError&) {
      return false;
    }
  });
  EXPECT_GT(found.refused, 100);
  EXPECT_GT(found.taken, 0);  // another number where any number will do
}

struct Flaw {
  const char* what;
  std::function<void(Dag&)> make;
};
void PrintTo(const Flaw& flaw, std::ostream* out) { *out << flaw.what; }

class Flaws : public testing::TestWithParam<Flaw> {};

TEST_P(Flaws, AreFound) {
  Dag dag = lowered("parallelism.dp=2 model.layers=1 training.global_batch=2");
  GetParam().make(dag);
  EXPECT_THAT(first_flaw(dag), HasSubstr(GetParam().what));
  EXPECT_THAT(refusal(to_bytes(dag)), HasSubstr(GetParam().what));
}

constexpr std::uint32_t nowhere = 1'000'000;

template <typename Change>
void change_task(Dag& dag, TaskId id, const Change& change) {
  Task task = dag.tasks[id];
  change(task);
  dag.tasks.set(id, task);
}
template <typename Change>
void change_buffer(Dag& dag, BufferId id, const Change& change) {
  Buffer buffer = dag.buffers[id];
  change(buffer);
  dag.buffers.set(id, buffer);
}

const Flaw flaws[] = {
    {"a rank without device", [](Dag& dag) { dag.ranks.back().device = nowhere; }},
    {"a pipeline stage that is not there", [](Dag& dag) { dag.ranks.back().pp = dag.info.stages; }},
    {"a pipeline stage that is not there", [](Dag& dag) { dag.ranks.back().pp = -1; }},
    {"more pipeline stages than GPUs", [](Dag& dag) { dag.info.stages = nowhere; }},
    {"a rank outside", [](Dag& dag) { dag.ranks.back().world_rank = nowhere; }},
    {"without ranks or steps", [](Dag& dag) { dag.info.steps = 0; }},
    {"a communicator",
     [](Dag& dag) {
       dag.communicators.back().layout.paths.front().crossings.push_back({nowhere, 1});
     }},
    {"buffer 1 ", [](Dag& dag) { change_buffer(dag, 1, [](Buffer& buffer) { buffer.rank = nowhere; }); }},
    {"buffer 1 ", [](Dag& dag) { change_buffer(dag, 1, [](Buffer& buffer) { buffer.base = nowhere; }); }},
    {"buffer 1 ", [](Dag& dag) { change_buffer(dag, 1, [](Buffer& buffer) { buffer.offset = -1; }); }},
    {"buffer 1 ",
     [](Dag& dag) { change_buffer(dag, 1, [](Buffer& buffer) {
                      buffer.shape.dims = {INT64_MAX, INT64_MAX, 1, 1};
                    }); }},
    {"buffer 1 ", [](Dag& dag) { change_buffer(dag, 1, [](Buffer& buffer) { buffer.shape.rank = 5; }); }},
    {"a shard", [](Dag& dag) { dag.shards.back().buffer = nowhere; }},
    {"a shard", [](Dag& dag) { dag.shards.back().rows += 1; }},
    {"an input", [](Dag& dag) { dag.inputs.back().buffer = nowhere; }},
    {"task 7 ", [](Dag& dag) { change_task(dag, 7, [](Task& task) { task.rank = nowhere; }); }},
    {"task 7 ", [](Dag& dag) { change_task(dag, 7, [](Task& task) { task.attributes = nowhere; }); }},
    {"task 7 ", [](Dag& dag) { change_task(dag, 7, [](Task& task) { task.name = 0xFFFF; }); }},
    {"task 7 ", [](Dag& dag) { change_task(dag, 7, [](Task& task) { task.group = 0; }); }},
    {"task 6 ", [](Dag& dag) { change_task(dag, 7, [](Task& task) { task.first_operand = nowhere; }); }},
    {"an operand without task", [](Dag& dag) { change_task(dag, 0, [](Task& task) { task.first_operand = 1; }); }},
    {"without communicator", [](Dag& dag) { dag.groups.back().communicator = nowhere; }},
    {"a collective whose tasks", [](Dag& dag) { dag.group_tasks.back() = nowhere; }},
    {"a collective whose tasks", [](Dag& dag) { dag.group_begin[1] = nowhere; }},
};
INSTANTIATE_TEST_SUITE_P(Each, Flaws, testing::ValuesIn(flaws));

MeasuredTimeline numbered_times(const Dag& dag) {
  MeasuredTimeline measured{.timeline = {}, .executed_on = "host, with \"BLAS\""};
  for (TaskId id = 0; id < dag.tasks.size(); ++id) {
    measured.timeline.start.push_back(id / 3.0);
    measured.timeline.end.push_back(id % 2 == 0 ? 1e300 : id + 1e-9);
  }
  return measured;
}

TEST(TimelineFile, HoldsEveryTimeExactly) {
  const TemporaryFolder folder;
  const Dag dag = small();
  const MeasuredTimeline measured = numbered_times(dag);
  write_bytes(folder / "t", to_bytes(dag, measured));
  const MeasuredTimeline read = read_timeline(folder / "t", dag);
  EXPECT_EQ(read.timeline.start, measured.timeline.start);
  EXPECT_EQ(read.timeline.end, measured.timeline.end);
  EXPECT_EQ(read.executed_on, measured.executed_on);
  write_bytes(folder / "t", to_bytes(dag));
  EXPECT_THROW(read_timeline(folder / "t", dag), InputError);
}

TEST(TimelineFile, IsOfOneDagAlone) {
  const TemporaryFolder folder;
  const Dag dag = small();
  write_bytes(folder / "t", to_bytes(dag, numbered_times(dag)));
  const auto refusal_for = [&](const auto& change) {
    Dag other = small();
    change(other);
    try {
      read_timeline(folder / "t", other);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refusal_for([](Dag& other) { other.tasks.pop_back(); }), HasSubstr("tasks, expected that of"));
  for (const auto& change : std::vector<std::function<void(Dag&)>>{
           [](Dag& other) { change_task(other, 3, [](Task& task) { task.stream = Stream::dp; }); },
           [](Dag& other) { other.names[0] += "x"; },
           [](Dag& other) { change_buffer(other, 2, [](Buffer& buffer) { buffer.dtype = DType::f16; }); },
           [](Dag& other) { other.ranks[0].world_rank = 77; }})
    EXPECT_THAT(refusal_for(change), HasSubstr("is the timeline of another step"));
  // What a task is expected to cost is no part of what is executed.
  Dag faster = small();
  for (Device& device : faster.devices) device.memory_bandwidth *= 2;
  EXPECT_NO_THROW(read_timeline(folder / "t", faster));
}

}  // namespace
}  // namespace tandem::studies::dag_file_test
