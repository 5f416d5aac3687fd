// The reports of a step and of a cross-check, on screens of several widths.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include "cli/text/crosscheck_text.h"
#include "cli/text/step_text.h"
#include "runtime/base/quantities.h"
#include "studies/step/step_interval.h"
#include "tests/cli/terminal.h"

namespace tandem::cli::result_text_test {
namespace {

using studies::ExpertBalance;
using studies::StepMetrics;
using testing::HasSubstr;

/// A step of 1 s: half of it compute. Stages 1 to 6 are equal, and fullest.
StepResult a_step() {
  StepResult r;
  r.scenario = "my-run";
  r.gpus = 256;
  r.gpu = "h100-sxm-80gb";
  r.tokens = 2097152;
  r.step_time = 1;
  r.lower_bound = 0.4;
  r.upper_bound = 2;
  r.tokens_per_second_per_gpu = 8192;
  r.model_flops_per_gpu = 500e12;
  r.mfu = 0.5;
  r.hfu = 0.6;
  r.parts.kernels[static_cast<std::size_t>(Phase::forward)] = 0.5;
  r.parts.exposed[static_cast<std::size_t>(Axis::tp)] = 0.2501;
  r.parts.bubble = 0.2489;
  r.parts.kernels[static_cast<std::size_t>(Phase::optimizer)] = 0.001;
  r.gpu_memory = 80'000'000'000;
  for (int stage = 0; stage < 8; ++stage) {
    const bool ends = stage == 0 || stage == 7;
    r.stages.push_back({.parameters = 4'000'000'000,
                        .gradients = 8'000'000'000,
                        .optimizer = 2'000'000'000,
                        .activations = ends ? 5'000'000'000 : 50'000'000'000,
                        .buffers = 250'000'000,
                        .peak_at = 0.25});
  }
  r.rank_classes = 8;
  r.link_classes = 20;
  r.tasks = 12345;
  r.run = {.backend = "simgrid", .collectives = "fluid", .folded = true, .wall = 0.123, .peak_rss = 64'000'000};
  return r;
}

TEST(ResultText, SaysWhatExpertsDropAndWhatItTakesToDropNothing) {
  StepResult r = a_step();
  ExpertBalance balance{.tokens = 1000,
                        .choices = {300, 50, 250, 100, 50, 100, 100, 50},
                        .slots = std::vector<std::int32_t>(8, 156),
                        .safe_step_time = 1.25};
  r.experts = balance;
  const std::string dropping = to_text(r, {.width = 120});
  EXPECT_THAT(dropping, HasSubstr("Experts, of 1000 tokens that are routed together\n"));
  EXPECT_THAT(dropping, HasSubstr("  busiest expert     300  of 1000 choices: expert 0, with 2.4 times its even share\n"));
  EXPECT_THAT(dropping, HasSubstr("  dropped         23.8 %  144 of expert 0, 94 of expert 2\n"));
  EXPECT_THAT(dropping, HasSubstr("  safe capacity      2.4  the least factor that drops nothing: a step of 1.250 s\n"));
  balance.expert_choice = true;
  balance.choices = balance.slots = std::vector<std::int32_t>(2, 500);
  r.experts = balance;
  EXPECT_THAT(to_text(r, {.width = 120}), HasSubstr("  no one takes  25.0 %  of the tokens, if each expert chooses at random\n"));
}

TEST(ResultText, SaysWhatARankSendsAndWhatLayersKeep) {
  StepResult r = a_step();
  StepMetrics m;
  m.parameters = 46'700'000'000;
  m.active_parameters = 12'900'000'000;
  m.flops = 4e12;
  m.memory_traffic = 1e10;
  m.ridge = 295.3;
  m.sent[static_cast<std::size_t>(Axis::tp)] = 2.5e9;
  m.overlap.by_axis[static_cast<std::size_t>(Axis::tp)] = m.overlap.all = {.busy = 0.4, .covered = 0.1};
  for (std::int32_t layer = 0; layer < 4; ++layer) m.layers.push_back({.layer = layer, .ranks = 8, .sent = m.sent, .kept = 5e8});
  m.layers.back().kept = 6e8;
  r.metrics = m;
  const std::string text = to_text(r, {.width = 120});
  EXPECT_THAT(text, HasSubstr("  parameters      46.70 G  12.90 G of which a token passes\n"));
  EXPECT_THAT(text, HasSubstr("  FLOPs per byte    400.0  of GPU memory"));
  EXPECT_THAT(text, HasSubstr("  tp    2.50 GB  400.00 ms  25.0 %\n"));
  EXPECT_THAT(text, HasSubstr("    0-2    500.00 MB   2.50 GB\n      3    600.00 MB   2.50 GB\n"));
}

TEST(ResultText, ShowsPoliciesAgainstStragglersBesideEachOther) {
  StepResult r = a_step();
  EXPECT_THAT(to_text(r, {.width = 140}), testing::Not(HasSubstr("stragglers")));
  r.sync = studies::SyncComparison{.replicas = 32,
                                   .ranks_of_replica = 8,
                                   .steps = 200,
                                   .fastest_step = 0.9,
                                   .slowest_step = 0.9,
                                   .deviation = 0.01,
                                   .synchronous_exchange = 0.1,
                                   .exchange = 0.1};
  r.sync->policies = {{.policy = {.kind = SyncKind::synchronous}, .batch_time = 1, .tokens_per_second_per_gpu = 8192},
                      {.policy = {.kind = SyncKind::backup, .backups = 2},
                       .batch_time = 0.8,
                       .tokens_per_second_per_gpu = 10240,
                       .speedup = 1.25,
                       .dropped_share = 0.0625,
                       .waiting_share = 0.01},
                      {.policy = {.kind = SyncKind::asynchronous, .servers = 1},
                       .batch_time = 0.5,
                       .tokens_per_second_per_gpu = 16384,
                       .speedup = 2,
                       .mean_staleness = 31,
                       .most_stale = 40,
                       .serving_share = 0.75,
                       .most_ahead = 3}};
  const std::string text = to_text(r, {.width = 140});
  EXPECT_THAT(text,
              HasSubstr("Policies against stragglers: 32 replicas of 8 GPUs, each 900.00 ms by itself (deviation 10.00 ms), "
                        "and 100.00 ms for the exchange\n"));
  EXPECT_THAT(text, testing::ContainsRegex("synchronous +1.000 s +8192.0 +1.000 +0.0 % +0.0 % +0.0 +0 +0\n"));
  EXPECT_THAT(text, testing::ContainsRegex("2 backups, late finish +800.00 ms +10240.0 +1.250 +6.2 % +1.0 % +0.0 +0 +0\n"));
  EXPECT_THAT(text,
              testing::ContainsRegex("asynchronous, 1 server +500.00 ms +16384.0 +2.000 .* 31.0 +40 +3 +servers busy 75.0 %\n"));
}

/// Without the lines that follow from the table of intervals, which runs that are measured anew change.
std::string text_of(const StepResult& result, const Screen& screen = {}) {
  const std::string text = to_text(result, screen);
  const std::size_t from = text.find("  give or take"), to = text.find("  tokens/s/GPU");
  return text.substr(0, from) + text.substr(to);
}

TEST(ResultText, TheIntervalAndWhatWouldNarrowIt) {
  const studies::Interval interval = studies::step_interval(a_step());
  const studies::Remedy& remedy = studies::best_remedy(interval);
  const std::string text = to_text(a_step());
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.1f} %  {} to {} in nine cases of ten, wider as no run was measured with this "
                                          "framework\n    narrowed to",
                                          100 * (interval.high - 1), duration(interval.low), duration(interval.high))));
  EXPECT_THAT(text, HasSubstr(fmt::format("{:.1f} %  by measuring {} (", 100 * interval.give_or_take_without(remedy.parts),
                                          remedy.what)));
}

// clang-format off
TEST(ResultText, At60Columns) {
  EXPECT_EQ(text_of(a_step(), {.width = 60}),
R"(my-run: 256 x h100-sxm-80gb, 2097152 tokens a step

  step time          1.000 s  between 400.00 ms (roofline,
                              all overlapped) and 2.000 s
                              (nothing overlapped)
  tokens/s/GPU        8192.0
  model TFLOP/s/GPU    500.0  causal attention counted at
                              half
  MFU                 50.0 %  HFU 60.0 %

Where the time goes (mean over ranks)
  compute     500.00 ms  50.0 %  ##############
  exposed tp  250.10 ms  25.0 %  #######
  bubble      248.90 ms  24.9 %  #######
  optimizer     1.00 ms   0.1 %

Memory by pipeline stage, GB at the peak; a GPU has 80.0
  GB
  stage  parameters  activations   peak  of GPU
      0        4.00         5.00  19.25    24 %
    1-6        4.00        50.00  64.25    80 %  fullest
      7        4.00         5.00  19.25    24 %
  no room for: gradients, optimizer, buffers
  fits: stage 1 is fullest, 250.00 ms into the step

Simulated 256 ranks as 8 classes, 20 link classes, 12345
  tasks, in 123.00 ms and 64 MB (simgrid)
)");
}

TEST(ResultText, At80Columns) {
  EXPECT_EQ(text_of(a_step(), {.width = 80}),
R"(my-run: 256 x h100-sxm-80gb, 2097152 tokens a step

  step time          1.000 s  between 400.00 ms (roofline, all overlapped) and
                              2.000 s (nothing overlapped)
  tokens/s/GPU        8192.0
  model TFLOP/s/GPU    500.0  causal attention counted at half
  MFU                 50.0 %  HFU 60.0 %

Where the time goes (mean over ranks)
  compute     500.00 ms  50.0 %  ####################
  exposed tp  250.10 ms  25.0 %  ##########
  bubble      248.90 ms  24.9 %  ##########
  optimizer     1.00 ms   0.1 %

Memory by pipeline stage, GB at the peak; a GPU has 80.0 GB
  stage  parameters  gradients  optimizer  activations   peak  of GPU
      0        4.00       8.00       2.00         5.00  19.25    24 %
    1-6        4.00       8.00       2.00        50.00  64.25    80 %  fullest
      7        4.00       8.00       2.00         5.00  19.25    24 %
  no room for: buffers
  fits: stage 1 is fullest, 250.00 ms into the step

Simulated 256 ranks as 8 classes, 20 link classes, 12345 tasks, in 123.00 ms
  and 64 MB (simgrid)
)");
}

TEST(ResultText, At120ColumnsAndInAPipe) {
  const std::string wide =
R"(my-run: 256 x h100-sxm-80gb, 2097152 tokens a step

  step time          1.000 s  between 400.00 ms (roofline, all overlapped) and 2.000 s (nothing overlapped)
  tokens/s/GPU        8192.0
  model TFLOP/s/GPU    500.0  causal attention counted at half
  MFU                 50.0 %  HFU 60.0 %

Where the time goes (mean over ranks)
  compute     500.00 ms  50.0 %  ####################
  exposed tp  250.10 ms  25.0 %  ##########
  bubble      248.90 ms  24.9 %  ##########
  optimizer     1.00 ms   0.1 %

Memory by pipeline stage, GB at the peak; a GPU has 80.0 GB
  stage  parameters  gradients  optimizer  activations  buffers   peak  of GPU
      0        4.00       8.00       2.00         5.00     0.25  19.25    24 %
    1-6        4.00       8.00       2.00        50.00     0.25  64.25    80 %  fullest
      7        4.00       8.00       2.00         5.00     0.25  19.25    24 %
  fits: stage 1 is fullest, 250.00 ms into the step

Simulated 256 ranks as 8 classes, 20 link classes, 12345 tasks, in 123.00 ms and 64 MB (simgrid)
)";
  EXPECT_EQ(text_of(a_step(), {.width = 120}), wide);
  EXPECT_EQ(text_of(a_step()), wide);
}
// clang-format on

TEST(ResultText, ColoursAreAllThatAColouredScreenAdds) {
  StepResult too_large = a_step();
  too_large.gpu_memory = 60'000'000'000;
  for (const std::size_t width : {60, 80, 120}) {
    const std::string coloured = to_text(too_large, {.width = width, .coloured = true});
    EXPECT_EQ(as_plain_text(coloured), to_text(too_large, {.width = width}));
    EXPECT_LE(widest_line(as_plain_text(coloured)), width);
    EXPECT_THAT(coloured, testing::HasSubstr("\x1b[31mDOES NOT FIT"));
    EXPECT_THAT(coloured, testing::HasSubstr("\x1b[31m64.25\x1b[0m"));
  }
}

Comparison a_comparison() {
  Comparison c;
  c.step = {0.0125, 0.0100};
  c.kinds = {{"attention_backward", 16, {0.0040, 0.0050}, 0.5}, {"all_reduce (tp)", 8, {0.0051, 0.0050}, 0.5}};
  c.streams = {{Stream::tp, 4, {.busy = 0.004, .covered = 0.001}, {.busy = 0.005, .covered = 0.005}}};
  c.worst = {{12, 3, "layer 1 attention backward", {0.0002, 0.0005}}};
  for (std::uint32_t rank = 0; rank < 4; ++rank) c.orders.push_back({.rank = rank, .tasks = 6, .streams = 2, .same = rank < 3});
  c.memory = {1'000'000, 1'250'000, std::nullopt};
  return c;
}

// clang-format off
TEST(ComparisonText, At60Columns) {
  EXPECT_EQ(to_text(a_comparison(), {.width = 60}),
R"(  step time: simulated 12.50 ms, measured 10.00 ms, error
    +25.0 %

  kind of task        simulated ms  measured ms    error
  attention_backward         4.000        5.000  -20.0 %
  all_reduce (tp)            5.100        5.000   +2.0 %
  all                        9.100       10.000   -9.0 %
  no room for: count, share

Overlap: the part of a stream's time in which its rank
  computed, too
  stream (ranks)  simulated ms  simulated  measured
  tp (4)                 4.000     25.0 %   100.0 %
  no room for: measured ms

Tasks that differ most
  task                    simulated ms  measured ms    error
  layer 1 attention b...         0.200        0.500  -60.0 %
  no room for: rank

Memory of the fullest rank at its peak: 1.00 MB as
  simulated, 1.25 MB as executed; this backend measures none

Order of tasks, rank by rank
  rank  tasks  streams
   0-2      6        2  the same order
     3      6        2  DIFFERENT order
)");
}

TEST(ComparisonText, At80ColumnsAndInAPipe) {
  const std::string wide =
R"(  step time: simulated 12.50 ms, measured 10.00 ms, error +25.0 %

  kind of task        count  simulated ms  measured ms    error   share
  attention_backward     16         4.000        5.000  -20.0 %  50.0 %
  all_reduce (tp)         8         5.100        5.000   +2.0 %  50.0 %
  all                    24         9.100       10.000   -9.0 %

Overlap: the part of a stream's time in which its rank computed, too
  stream (ranks)  simulated ms  measured ms  simulated  measured
  tp (4)                 4.000        5.000     25.0 %   100.0 %

Tasks that differ most
  task                        rank  simulated ms  measured ms    error
  layer 1 attention backward     3         0.200        0.500  -60.0 %

Memory of the fullest rank at its peak: 1.00 MB as simulated, 1.25 MB as
  executed; this backend measures none

Order of tasks, rank by rank
  rank  tasks  streams
   0-2      6        2  the same order
     3      6        2  DIFFERENT order
)";
  EXPECT_EQ(to_text(a_comparison(), {.width = 80}), wide);
  EXPECT_EQ(to_text(a_comparison(), {.width = 120}), to_text(a_comparison()));
}
// clang-format on

TEST(ComparisonText, OfTasksThatTookNoTimeShowsNoError) {
  Comparison c;
  c.step = {1e-9, 0};
  c.kinds = {{"fill", 1, {1e-9, 0}, 0}};
  const std::string text = to_text(c);
  EXPECT_THAT(text, testing::HasSubstr("No communication"));
  EXPECT_THAT(text, testing::Not(testing::AnyOf(testing::HasSubstr("inf"), testing::HasSubstr("nan"))));
}

}  // namespace
}  // namespace tandem::cli::result_text_test
