// Traces of torch.profiler: what Tandem makes of its own, in which nothing is lost, and of small ones in PyTorch's words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::kineto_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json read_json(const std::string& path) { return json::parse(read_all(path)); }

std::map<std::string, json> by_name(const json& list) {
  std::map<std::string, json> found;
  for (const json& item : list) found[item["name"]] = item;
  return found;
}

/// An event that lasts from `start` to `end`, in microseconds.
json event(const std::string& category, const std::string& name, double start, double end, json args, int thread = 7) {
  return {{"ph", "X"},     {"cat", category}, {"name", name},       {"pid", 0},
          {"tid", thread}, {"ts", start},     {"dur", end - start}, {"args", std::move(args)}};
}

/// Two iterations of a thread that issues a product, a norm, an all-reduce, in autograd's thread an attention, and in an
/// optimizer's step a kernel; each kernel runs 100 us after its launch. The first iteration begins at 1,000 us and ends at 2,000.
json events() {
  json all = json::array();
  int correlation = 0;
  const auto launch = [&](double at, int thread, const std::string& name, double start, double end, json args = json::object()) {
    ++correlation;
    all.push_back(event("cuda_runtime", "cudaLaunchKernel", at, at + 5, {{"correlation", correlation}}, thread));
    args["correlation"] = correlation;
    args["stream"] = args.contains("Collective name") ? 20 : 7;
    all.push_back(event("kernel", name, start, end, std::move(args)));
  };
  const json group = {{"Collective name", "allreduce"},
                      {"In msg nelems", 1024},
                      {"Out msg nelems", 1024},
                      {"Group size", 2},
                      {"dtype", "BFloat16"},
                      {"Process Group Ranks", "[0, 1]"}};
  for (const double begin : {1000.0, 2000.0}) {
    all.push_back(event("user_annotation", "ProfilerStep#" + std::to_string(static_cast<int>(begin / 1000)), begin, begin + 999,
                        json::object(), 1));
    launch(begin + 10, 1, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", begin + 110, begin + 310);
    launch(begin + 20, 1, "void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<A>(B)", begin + 310, begin + 350);
    launch(begin + 30, 1, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", begin + 330, begin + 430, group);
    all.push_back(
        event("cpu_op", "autograd::engine::evaluate_function: FlashAttnFuncBackward", begin + 40, begin + 60, json::object(), 2));
    launch(begin + 50, 2, "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<A>(B)", begin + 450, begin + 550);
    all.push_back(event("user_annotation", "Optimizer.step#AdamW.step", begin + 70, begin + 90, json::object(), 1));
    launch(begin + 80, 1, "void at::native::elementwise_kernel<A>(B)", begin + 550, begin + 600);
  }
  return all;
}

json trace_of(int rank, int world, json all = events()) {
  return {{"schemaVersion", 1},
          {"deviceProperties", json::array({{{"id", 0}, {"name", "NVIDIA H100"}}})},
          {"distributedInfo", {{"backend", "nccl"}, {"rank", rank}, {"world_size", world}}},
          {"traceEvents", std::move(all)}};
}

class KinetoTest : public testing::Test {
 protected:
  TemporaryFolder folder_;

  std::string write(const std::string& name, const json& trace) {
    std::string path = folder_ / name;
    std::ofstream(path) << trace.dump();
    return path;
  }
  json imported(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments{"import", path, "--from", "kineto", "--out", folder_ / "out.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult run = run_tandem(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return read_json(folder_ / "out.json");
  }
};

TEST_F(KinetoTest, TellsWhereTheTimeOfAStepGoes) {
  const json step = imported(write("rank0.json", trace_of(0, 2)))["ranks"][0];
  EXPECT_EQ(step["rank"], 0);
  EXPECT_EQ(step["device"], "NVIDIA H100");
  EXPECT_EQ(step["step"], "ProfilerStep#1");  // the last one has no end
  // From the first kernel of a step to that of the next.
  EXPECT_NEAR(step["step_time_s"].get<double>(), 1000e-6, 1e-12);
  EXPECT_NEAR(step["compute_s"].get<double>(), (200 + 40 + 100) * 1e-6, 1e-12);
  EXPECT_NEAR(step["optimizer_s"].get<double>(), 50e-6, 1e-12);
  EXPECT_NEAR(step["exposed_s"].get<double>(), 80e-6, 1e-12);  // 20 us lie beside the norm
  EXPECT_NEAR(step["idle_s"].get<double>(), (20 + 510) * 1e-6, 1e-12);
  const auto kinds = by_name(step["kinds"]);
  EXPECT_EQ(kinds.size(), 5U);
  for (const auto& [name, us] : std::map<std::string, double>{
           {"matrix products", 200}, {"norms", 40}, {"all_reduce", 100}, {"attention", 100}, {"optimizer", 50}}) {
    ASSERT_TRUE(kinds.contains(name)) << name;
    EXPECT_EQ(kinds.at(name)["count"], 1) << name;
    EXPECT_NEAR(kinds.at(name)["time_s"].get<double>(), us * 1e-6, 1e-12) << name;
  }
}

TEST_F(KinetoTest, ReadsCompressedTracesAndTimesSince1970ToTheNanosecond) {
  json all = events();
  for (json& one : all) one["ts"] = one["ts"].get<double>();
  std::string text = trace_of(0, 1, all).dump();
  for (std::size_t at = text.find("\"ts\":"); at != std::string::npos; at = text.find("\"ts\":", at + 1))
    text.insert(at + 5, "174046167947");
  // 1000.0 becomes 1740461679471000.0, of which a double has quarters of a microsecond alone.
  const std::string path = folder_ / "rank0.json.gz";
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const json step = imported(path)["ranks"][0];
  EXPECT_NEAR(step["step_time_s"].get<double>(), 1000e-6, 1e-12);
  EXPECT_NEAR(step["compute_s"].get<double>(), 340e-6, 1e-12);
}

TEST_F(KinetoTest, TakesTheStepThatIsAskedFor) {
  const std::string path = write("rank0.json", trace_of(0, 2));
  EXPECT_EQ(imported(path, {"--step", "2"})["ranks"][0]["step"], "ProfilerStep#2");
  expect_refusal(run_tandem({"import", path, "--from", "kineto", "--step", "7"}), 2,
                 {path, "no kernels of ProfilerStep#7", "one of ProfilerStep#1, ProfilerStep#2"});
}

// Of one step, the result and the traces of all ranks differ by rounding alone: in the step, in what computes, and in every kind.
TEST_F(KinetoTest, DiffHoldsAResultAgainstTraces) {
  const std::string scenario = scenario_file("tiny-host"), traces = folder_ / "traces/", result = folder_ / "simulated.json";
  std::filesystem::create_directory(traces);
  ASSERT_EQ(run_tandem({"simulate", scenario, "--trace", traces, "--json", result, "--no-fold"}).exit_code, 0);
  const CommandResult run = run_tandem({"diff", result, traces, "--json", folder_ / "d.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("executed (torch.profiler)"));
  const json difference = read_json(folder_ / "d.json");
  const double rounding = 1e-9 * 1000;  // of a nanosecond for each task
  EXPECT_NEAR(difference["a"]["step_time_s"].get<double>(), difference["b"]["step_time_s"].get<double>(), rounding);
  double copies = 0;  // are no compute in a trace
  for (const json& kind : difference["kinds"])
    if (kind["name"].get<std::string>().starts_with("copies")) copies += kind["b_s"].get<double>();
  double all_a = 0, all_b = 0;
  for (const json& part : difference["parts"]) {
    const double a = part["a_s"].is_null() ? 0 : part["a_s"].get<double>(),
                 b = part["b_s"].is_null() ? 0 : part["b_s"].get<double>();
    if (part["name"] == "compute" || part["name"] == "optimizer") {
      EXPECT_GT(b, 0);
      EXPECT_NEAR(a, b, copies + rounding) << part["name"];
    }
    all_a += a;
    all_b += b;
  }
  EXPECT_NEAR(all_a, all_b, rounding);
  EXPECT_GE(difference["kinds"].size(), 6U);
  for (const json& kind : difference["kinds"]) {
    ASSERT_FALSE(kind["a_s"].is_null() || kind["b_s"].is_null()) << kind["name"];
    EXPECT_NEAR(kind["a_s"].get<double>(), kind["b_s"].get<double>(), rounding) << kind["name"];
  }
  // Two traces are compared as well.
  EXPECT_EQ(run_tandem({"diff", traces, traces}).exit_code, 0);
}

// A simulated step written as Kineto's and read again is the same: every kind, count and time.
TEST_F(KinetoTest, OwnTracesComeBackAsTheyWere) {
  const std::string scenario = scenario_file("tiny-host"), traces = folder_ / "traces/";
  std::filesystem::create_directory(traces);
  ASSERT_EQ(run_tandem({"simulate", scenario, "--trace", traces, "--no-fold"}).exit_code, 0);
  const CommandResult run = run_tandem({"crosscheck", scenario, "--measured", traces, "--json", folder_ / "c.json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("8 of 8 ranks, traced by torch.profiler"));
  const json result = read_json(folder_ / "c.json");
  EXPECT_EQ(result["ranks"].size(), 8U);
  const double rounding = 1e-9 * 1000;  // of a nanosecond for each task
  EXPECT_NEAR(result["measured_s"].get<double>(), result["simulated_s"].get<double>(), rounding);
  double simulated = 0, measured = 0;
  for (const json& part : result["parts"]) {
    EXPECT_NEAR(part["measured_s"].get<double>(), part["simulated_s"].get<double>(), rounding) << part["name"];
    simulated += part["simulated_s"].get<double>();
    measured += part["measured_s"].get<double>();
  }
  EXPECT_NEAR(simulated, result["simulated_s"].get<double>(), 1e-9);  // parts add up
  EXPECT_NEAR(measured, result["measured_s"].get<double>(), 1e-9);
  EXPECT_GT(result["kinds"].size(), 6U);
  for (const json& kind : result["kinds"]) {
    EXPECT_EQ(kind["simulated_count"], kind["measured_count"]) << kind["name"];
    EXPECT_NEAR(kind["measured_s"].get<double>(), kind["simulated_s"].get<double>(), rounding) << kind["name"];
  }
}

// The group's members tell the axis: ranks 0 and 1 of tp 2, where dp has 0 and 2 at the same size.
TEST_F(KinetoTest, FindsTheAxisByTheGroup) {
  json all = events();
  json dp = all;
  for (json& one : dp)
    if (one["args"].contains("Process Group Ranks")) one["args"]["Process Group Ranks"] = "[0, 2]";
  const std::vector<std::string> plan{"--set", "parallelism={tp: 2, sp: false, pp: 1, dp: 2, zero: 0}", "--set",
                                      "cluster.gpus=4"};
  for (const auto& [name, trace, axis] : {std::tuple("tp.json", all, "tp"), std::tuple("dp.json", dp, "dp")}) {
    std::vector<std::string> arguments{"crosscheck", scenario_file("tiny-host"), "--measured", write(name, trace_of(0, 4, trace)),
                                       "--json",     folder_ / "c.json"};
    arguments.insert(arguments.end(), plan.begin(), plan.end());
    const CommandResult run = run_tandem(arguments);
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json result = read_json(folder_ / "c.json");
    const auto kinds = by_name(result["kinds"]);
    ASSERT_TRUE(kinds.contains(std::string("all_reduce (") + axis + ")")) << result["kinds"];
    EXPECT_EQ(kinds.at(std::string("all_reduce (") + axis + ")")["measured_count"], 1);
    EXPECT_THAT(result["notes"].dump(), HasSubstr("3 of 4 ranks were not traced"));
  }
}

TEST_F(KinetoTest, RefusesWhatIsNoTraceOfTheRun) {
  const auto refused = [&](const std::string& path, const std::vector<std::string>& words) {
    expect_refusal(run_tandem({"import", path, "--from", "kineto"}), 2, words);
  };
  json cpu = json::array();
  for (const json& one : events())
    if (one["cat"] != "kernel") cpu.push_back(one);
  refused(write("cpu.json", trace_of(0, 1, cpu)), {"cpu.json", "no kernel of a GPU", "ProfilerActivity.CUDA"});
  refused(write("other.json", json{{"a", 1}}), {"other.json", "no traceEvents"});
  std::ofstream(folder_ / "broken.json") << trace_of(0, 1).dump().substr(0, 300);
  refused(folder_ / "broken.json", {"broken.json", "is no JSON from byte"});
  refused(folder_ / "missing.json", {"missing.json", "cannot be read"});
  std::filesystem::create_directory(folder_ / "empty");
  refused(folder_ / "empty", {"holds no *.json"});
  std::filesystem::create_directory(folder_ / "two");
  write("two/a.json", trace_of(0, 2));
  write("two/b.json", trace_of(0, 2));
  refused(folder_ / "two", {"b.json", "is of rank 0, and so is", "a.json"});
  write("two/b.json", trace_of(1, 4));
  refused(folder_ / "two", {"b.json", "a world of 4 ranks", "a.json of one of 2"});
  const std::string trace = write("rank.json", trace_of(0, 2));
  expect_refusal(run_tandem({"crosscheck", scenario_file("tiny-host"), "--measured", trace}), 2,
                 {"rank.json", "a run on 2 ranks, and the scenario has 8"});
  expect_refusal(run_tandem({"crosscheck", scenario_file("tiny-host"), "--measured", trace, "--report", folder_ / "r.html"}), 2,
                 {"--report", "--json"});
  expect_refusal(run_tandem({"import", trace, "--from", "kineto", "--gpus", "8"}), 2,
                 {"--gpus: --from kineto gives", "has no use for it"});
}

}  // namespace
}  // namespace tandem::cli::kineto_test
