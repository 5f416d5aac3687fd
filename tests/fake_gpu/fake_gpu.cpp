// Stands in for tandem_cuda.so where there is no GPU (TANDEM_CUDA_MODULE): kernels and collectives take what a formula says,
// every process has a clock of its own, and nothing is computed. FAKE_GPU_FAILS names a rank whose step cannot be made,
// FAKE_GPU_ODD one with a GPU of another model.
//
// With FAKE_GPU_SECONDS a kernel takes so many real seconds, and processes meet at collectives, as those of `tandem-run` do. Then
// FAKE_GPU_HANGS names a rank that hangs at its task number FAKE_GPU_HANGS_AT, after it has written that task to the file
// FAKE_GPU_MARK.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

#include "runtime/cuda/gpu.h"
#include "runtime/launch/control_plane.h"
#include "runtime/plan/issue_order.h"

namespace tandem {
namespace {

bool is_named(const char* variable, std::uint32_t rank) {
  const char* value = std::getenv(variable);
  return value != nullptr && value == std::to_string(rank);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

/// Takes real time, and waits for the others where a GPU would. No collective is moved: all processes, not its members alone,
/// meet at it, which needs no communicators.
class LiveStep final : public GpuStep {
 public:
  LiveStep(const Dag& dag, const GpuStepOptions& options)
      : dag_(dag), options_(options), kernel_(std::stod(variable("FAKE_GPU_SECONDS"))) {
    if (is_named("FAKE_GPU_HANGS", options.launch->rank)) hangs_at_ = std::stoul(variable("FAKE_GPU_HANGS_AT"));
  }

  bool is_started_ahead() const override { return true; }
  void prepare(const Dag&, Completions& completions) override { completions_ = &completions; }
  void start(std::span<const TaskId>) override {}
  void drive() override {
    const auto began = std::chrono::steady_clock::now();
    const auto now = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    for (const TaskId first : issue_order(dag_)) {
      const Seconds begin = now();
      const std::span<const TaskId> unit = dag_.unit_of(first);
      const auto own = std::ranges::find_if(unit, [&](TaskId id) { return dag_.tasks[id].rank == options_.launch->rank; });
      const bool collective = is_communication(dag_.tasks[first].op);
      if (own != unit.end()) work_at(*own, collective);
      if (collective) options_.control->barrier();
      completions_->ended(first, own == unit.end() ? 0 : begin, own == unit.end() ? 0 : now());
    }
    duration_ = now();
  }

  void fill(std::uint64_t) override {}
  void read(BufferId, const HostTensor& out) override { std::fill_n(out.f32(), out.shape.elements(), 1.0F); }
  std::size_t verify_collectives() override { return 1; }
  Bytes arena(RankIndex) const override { return 0; }
  void date_tasks(bool) override {}
  Seconds duration() const override { return duration_; }
  GraphCount graphs() const override { return {.graphs = 1}; }
  void close() override {}

 private:
  const Dag& dag_;
  GpuStepOptions options_;
  Seconds kernel_, duration_ = 0;
  std::size_t done_ = 0, hangs_at_ = static_cast<std::size_t>(-1);
  Completions* completions_ = nullptr;

  void work_at(TaskId id, bool collective) {
    options_.control->progress(id, collective);
    if (!collective) std::this_thread::sleep_for(std::chrono::duration<double>(kernel_));
    if (done_++ != hangs_at_) return;
    options_.control->progress(id, false);
    std::ofstream(variable("FAKE_GPU_MARK")) << dag_.name_of_task(id) << "' (" << id << ")\n";
    for (;;) ::pause();
  }
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
    if (!variable("FAKE_GPU_SECONDS").empty()) return std::make_unique<LiveStep>(dag, options);
    return std::make_unique<FakeStep>(dag, options);
  }
  std::unique_ptr<KernelTimer> make_kernel_timer() override { return std::make_unique<FakeTimer>(); }

 private:
  int device_;
};

}  // namespace
}  // namespace tandem

extern "C" std::unique_ptr<tandem::Gpu> tandem_open_gpu(int device, int) { return std::make_unique<tandem::FakeGpu>(device); }
