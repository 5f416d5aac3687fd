// Stands in for tandem_cuda.so where there is no GPU (TANDEM_CUDA_MODULE): kernels and collectives take what a formula says,
// every process has a clock of its own, and nothing is computed. FAKE_GPU_FAILS names a rank whose step cannot be made,
// FAKE_GPU_ODD one with a GPU of another model.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "runtime/cuda/gpu.h"
#include "runtime/launch/control_plane.h"
#include "runtime/plan/issue_order.h"

namespace tandem {
namespace {

bool is_named(const char* variable, std::uint32_t rank) {
  const char* value = std::getenv(variable);
  return value != nullptr && value == std::to_string(rank);
}

/// Latency and bytes at a rate, by operation and members; the odd ranks come later than the even ones and wait less.
Seconds collective_time(const Dag& dag, TaskId id) {
  const Task& task = dag.tasks[id];
  const auto members = static_cast<double>(dag.communicator_of(task).members.size());
  const Seconds alone = 10e-6 * members + static_cast<double>(dag.groups[task.group].bytes) / 1e11;
  return alone + (task.rank % 2 == 0 ? 3e-6 : 0);
}

class FakeStep final : public GpuStep {
 public:
  FakeStep(const Dag& dag, const GpuStepOptions& options) : dag_(dag), options_(options) {
    if (options.control == nullptr || options.graphs != GraphScope::full)
      throw std::logic_error("a fake GPU runs launched steps as graphs");
    if (is_named("FAKE_GPU_FAILS", options.launch->rank)) throw std::runtime_error("this GPU has no memory left");
  }

  bool is_started_ahead() const override { return true; }
  void prepare(const Dag&, Completions& completions) override { completions_ = &completions; }
  void start(std::span<const TaskId>) override {}
  void drive() override {
    Seconds now = options_.launch->rank;  // no clock is another's
    for (const TaskId first : issue_order(dag_)) {
      Seconds begin = 0, end = 0;
      for (const TaskId id : dag_.unit_of(first)) {
        if (dag_.tasks[id].rank != options_.launch->rank) continue;
        options_.control->progress(id, true);
        begin = now;
        end = now += collective_time(dag_, id);
      }
      completions_->ended(first, begin, end);
    }
  }

  void fill(std::uint64_t) override {}
  void read(BufferId, const HostTensor&) override { throw std::logic_error("a fake GPU holds nothing"); }
  std::size_t verify_collectives() override { throw std::logic_error("a fake GPU moves nothing"); }
  Bytes arena(RankIndex) const override { return 0; }
  void date_tasks(bool) override {}
  Seconds duration() const override { return 0; }
  GraphCount graphs() const override { return {.graphs = 1}; }
  void close() override {}

 private:
  const Dag& dag_;
  GpuStepOptions options_;
  Completions* completions_ = nullptr;
};

class FakeTimer final : public KernelTimer {
 public:
  Timing time(const TimedKernel& kernel, Seconds) override {
    const OpCost cost = cost_of(kernel);
    const Seconds time = 3e-6 + cost.flops / 1e15 + static_cast<double>(cost.bytes) / 1e12;
    return {time, time, time, 5};
  }
  int fewest_runs(const TimedKernel&) const override { return 8; }
};

class FakeGpu final : public Gpu {
 public:
  explicit FakeGpu(int device) : device_(device) {}
  GpuInfo info() const override {
    const bool odd = is_named("FAKE_GPU_ODD", static_cast<std::uint32_t>(device_));
    return {.name = odd ? "odd GPU" : "fake GPU", .versions = "none", .memory = Bytes{1} << 30, .multiprocessors = 4};
  }
  std::unique_ptr<GpuStep> make_step(const Dag& dag, const GpuStepOptions& options) override {
    return std::make_unique<FakeStep>(dag, options);
  }
  std::unique_ptr<KernelTimer> make_kernel_timer() override { return std::make_unique<FakeTimer>(); }

 private:
  int device_;
};

}  // namespace
}  // namespace tandem

extern "C" std::unique_ptr<tandem::Gpu> tandem_open_gpu(int device, int) { return std::make_unique<tandem::FakeGpu>(device); }
