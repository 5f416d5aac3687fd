// How a step on GPUs is measured, on one whose runs take what they are told.

#include "runtime/execution/measured_runs.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "runtime/dag/dag_builder.h"

namespace tandem::measured_runs_test {
namespace {

/// One task, a product; each run with dates takes a second more than the one before, without them two.
class SlowingStep final : public GpuStep {
 public:
  explicit SlowingStep(std::size_t runs) : runs_(runs) {}

  bool is_started_ahead() const override { return true; }
  void prepare(const Dag&, Completions& completions) override { completions_ = &completions; }
  void start(std::span<const TaskId>) override {}
  void drive() override {
    events += 'r';
    duration_ += dates_ ? 1 : 2;
    completions_->ended(0, dates_ ? duration_ / 2 : 0, dates_ ? duration_ : 0);
  }
  void fill(std::uint64_t) override {
    events += 'f';
    duration_ = 0;
  }
  void read(BufferId, const HostTensor&) override {}
  std::size_t verify_collectives() override { return 0; }
  Bytes arena(RankIndex) const override { return 0; }
  void date_tasks(bool dates) override {
    events += dates ? 'D' : 'U';
    dates_ = dates;
  }
  Seconds duration() const override { return duration_; }
  std::size_t runs_of_mean() const override { return runs_; }
  GraphCount graphs() const override { return {}; }
  void close() override {}

  std::string events;  ///< (f)ills, (r)uns, (D)ates or none (U)

 private:
  std::size_t runs_;
  bool dates_ = true;
  Seconds duration_ = 0;
  Completions* completions_ = nullptr;
};

Dag one_task() {
  DagBuilder builder;
  const RankIndex rank = builder.add_rank({});
  const std::array x{builder.buffer(rank, BufferKind::activation, DType::f32, Shape(1))};
  builder.kernel(OpKind::fill, {}, {.name = "fill"}, {}, x);
  return builder.finish();
}

TEST(MeasuredRuns, AreMeansAndLeaveWhatOneRunLeaves) {
  SlowingStep step(4);
  EndedTasks ended = 0;
  const MeasuredRuns runs = measure_runs(one_task(), step, {.ended = &ended});
  EXPECT_EQ(step.events, "UfrfrrrrDfrrrrfr");
  EXPECT_DOUBLE_EQ(runs.undated, (2 + 4 + 6 + 8) / 4.0);
  EXPECT_EQ(runs.timeline.start, std::vector<Seconds>{(1 + 2 + 3 + 4) / 8.0});
  EXPECT_EQ(runs.timeline.end, std::vector<Seconds>{(1 + 2 + 3 + 4) / 4.0});
  EXPECT_EQ(ended, 1U);
}

TEST(MeasuredRuns, OfAShortStepAreThree) {
  SlowingStep step(1);
  const MeasuredRuns runs = measure_runs(one_task(), step, {});
  EXPECT_EQ(step.events, "UfrfrDfr");
  EXPECT_DOUBLE_EQ(runs.undated, 2);
  EXPECT_EQ(runs.timeline.end, std::vector<Seconds>{1});
}

}  // namespace
}  // namespace tandem::measured_runs_test
