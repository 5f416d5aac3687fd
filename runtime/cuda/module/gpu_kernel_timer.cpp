#include "runtime/cuda/module/gpu_kernel_timer.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/divide_up.h"
#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/module/event_timer.h"
#include "runtime/cuda/module/gpu_contents.h"
#include "runtime/cuda/module/step_load.h"
#include "runtime/cuda/module/streams.h"
#include "runtime/timed_operands.h"

namespace tandem {
namespace {

constexpr Bytes alignment = 256;
constexpr int most_sets = 32;
constexpr int most_runs_per_graph = 16;
constexpr Seconds shortest_graph = 1e-3;  // of runs: far longer than an event is off by
constexpr int fewest_samples = 5, most_samples = 20;
// Of load before a sample, in times of it and at least: what is timed hardly counts in the mean power.
constexpr int load_per_run = 4;
constexpr Seconds least_load = 0.01;
// Of load before the first sample, and beside what the host does for the next kernel, so that the power limit stays reached.
constexpr Seconds before_all = 0.1, beside_the_host = 0.04;

/// Products and attention, which draw the power that the limit is for. Others wait for memory, whose clock stays.
bool is_clocked(OpKind op) {
  return device_operation(op).prepare != nullptr || op == OpKind::attention || op == OpKind::attention_backward;
}

Bytes aligned(Bytes bytes) { return round_up(bytes, alignment); }

/// The operands of one run, in memory of their own.
class OperandSet {
 public:
  OperandSet(const TimedKernel& kernel, Queue& queue) {
    Bytes bytes = 0;
    for (const OperandType& type : kernel.operands) bytes += aligned(type.bytes()) + alignment;
    memory_ = GpuMemory(static_cast<std::size_t>(bytes));
    Bytes at = 0;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
      const OperandType& type = kernel.operands[i];
      std::byte* const data = memory_.data() + at;
      at += aligned(type.bytes());
      tensors_.push_back(
          {data, type.shape, type.dtype, type.dtype == DType::f8 ? reinterpret_cast<float*>(memory_.data() + at) : nullptr});
      at += alignment;
    }
    write(kernel, queue);
  }
  std::span<const DeviceTensor> tensors() const { return tensors_; }

 private:
  GpuMemory memory_;
  std::vector<DeviceTensor> tensors_;

  /// Writes random numbers of a usual size, because the numbers decide how much power the arithmetic draws, and so the clock.
  void write(const TimedKernel& kernel, Queue& queue) {
    const std::vector<std::vector<std::int32_t>> integers = integer_contents(kernel);
    GpuContentsWriter writer(queue, [this](BufferId id) { return tensors_[id]; });
    constexpr std::uint64_t seed = 7;
    constexpr std::int64_t between_minus_one_and_one = 3;  // "columns" of InitialParameter
    for (BufferId i = 0; i < tensors_.size(); ++i) {
      const DeviceTensor& to = tensors_[i];
      if (to.dtype == DType::i32) {
        check(cudaMemsetAsync(to.data, 0, static_cast<std::size_t>(kernel.operands[i].bytes()), queue.stream), "cudaMemset");
        copy_in(to.data, integers[i].data(), integers[i].size() * sizeof(std::int32_t), queue);
        continue;
      }
      const InitialParameter values(seed, "operand " + std::to_string(i), between_minus_one_and_one);
      writer.write(Stretch{i, 0, to.shape.elements()}, ShardValues{.values = values, .columns = to.shape.elements()});
      const float one = 1;
      if (to.scale != nullptr) copy_in(to.scale, &one, sizeof one, queue);
    }
    check(cudaStreamSynchronize(queue.stream), "operands");
  }

  /// In the queue's stream, which waits for no copy of another: a copy of pageable memory may still be under way when cudaMemcpy
  /// returns.
  static void copy_in(void* to, const void* from, std::size_t bytes, const Queue& queue) {
    check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, queue.stream), "cudaMemcpyAsync");
    check(cudaStreamSynchronize(queue.stream), "cudaMemcpyAsync");
  }
};

class GpuKernelTimer final : public KernelTimer {
 public:
  GpuKernelTimer(int multiprocessors, Bytes l2_bytes) : multiprocessors_(multiprocessors), l2_bytes_(l2_bytes) {}

  Timing time(const TimedKernel& kernel, Seconds budget) override {
    const DeviceOperation& operation = device_operation(kernel.op);
    const std::size_t scratch = operation.scratch == nullptr ? 0 : operation.scratch(kernel.operands, kernel.attributes);
    OwnedQueue owned(multiprocessors_, scratch);
    Queue& queue = owned.get();
    const std::vector<OperandSet> sets = operand_sets(kernel, queue);
    if (load_)
      load_->wait();
    else
      load_.emplace(multiprocessors_);
    if (operation.prepare != nullptr) operation.prepare(queue, kernel.operands, kernel.attributes);
    const auto run = [&](std::size_t i) { operation.kernel(queue, sets[i % sets.size()].tensors(), kernel.attributes); };
    run(0);  // loads what is loaded at first use, outside of a capture
    check(cudaStreamSynchronize(queue.stream), "a kernel");

    // What power slows down is told as a multiple of the load right before it, and what it takes follows from the load's mean.
    const bool follows_clock = is_clocked(kernel.op);
    const Seconds mean_load = load_->mean();

    // A long kernel is run once for each sample, so that it takes 8 runs at least: see fewest_runs.
    const Seconds alone = EventTimer(queue.stream).milliseconds([&] { run(0); }) * 1e-3;
    const int runs = std::clamp(static_cast<int>(shortest_graph / std::max(alone, 1e-9)), 1, most_runs_per_graph);
    const Graph graph(queue, run, runs);
    Seconds loaded = 0;
    Event load_begins(true), begins(true), ends(true);
    const auto sample = [&](Seconds load) {
      loaded = load_->put(queue, load);
      load_begins.record(queue, false);
      load_->put_one(queue);
      begins.record(queue, false);
      graph.launch(queue);
      ends.record(queue, false);
      check(cudaStreamSynchronize(queue.stream), "a kernel");
      const Seconds time = ends.seconds_since(begins) / runs, load_now = begins.seconds_since(load_begins);
      return follows_clock && load_now > 0 && mean_load > 0 ? time * mean_load / load_now : time;
    };
    const Seconds once = sample(before_all);  // and warms up
    const Seconds load = std::max(least_load, load_per_run * once * runs);
    std::vector<Seconds> times = {sample(load)};
    const double affordable = budget / std::max(loaded + once * runs, 1e-6);
    const auto samples = static_cast<std::size_t>(std::clamp<double>(affordable, fewest_samples, most_samples));
    while (times.size() < samples) times.push_back(sample(load));
    load_->put_beside(beside_the_host);
    return timing_of(std::move(times));
  }

  /// What is prepared are products, for whose algorithms there are trials.
  int fewest_runs(const TimedKernel& kernel) const override {
    const int trials = device_operation(kernel.op).prepare == nullptr ? 0 : CublasLt::most_algorithms * CublasLt::fewest_trials;
    return trials + 3 + fewest_samples * (1 + load_per_run);
  }

 private:
  /// A captured graph of several runs of a kernel.
  class Graph {
   public:
    template <typename Run>
    Graph(const Queue& queue, const Run& run, int runs) {
      check(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
      for (int i = 0; i < runs; ++i) run(static_cast<std::size_t>(i));
      cudaGraph_t captured = nullptr;
      check(cudaStreamEndCapture(queue.stream, &captured), "cudaStreamEndCapture");
      const cudaError_t made = cudaGraphInstantiate(&graph_, captured, 0);
      cudaGraphDestroy(captured);
      check(made, "cudaGraphInstantiate");
    }
    Graph(const Graph&) = delete;
    ~Graph() { cudaGraphExecDestroy(graph_); }
    void launch(const Queue& queue) const { check(cudaGraphLaunch(graph_, queue.stream), "cudaGraphLaunch"); }

   private:
    cudaGraphExec_t graph_ = nullptr;
  };

  int multiprocessors_;
  Bytes l2_bytes_;
  std::optional<StepLoad> load_;

  std::vector<OperandSet> operand_sets(const TimedKernel& kernel, Queue& queue) const {
    Bytes bytes = 0;
    for (const OperandType& type : kernel.operands) bytes += type.bytes();
    const Bytes wanted = bytes == 0 ? 1 : 2 * l2_bytes_ / bytes + 2;
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    const Bytes affordable = bytes == 0 ? 1 : static_cast<Bytes>(available / 2) / bytes;
    std::vector<OperandSet> sets;
    for (Bytes i = 0; i < std::clamp<Bytes>(std::min(wanted, affordable), 1, most_sets); ++i) sets.emplace_back(kernel, queue);
    return sets;
  }
};

}  // namespace

std::unique_ptr<KernelTimer> make_gpu_kernel_timer(int multiprocessors, Bytes l2_bytes) {
  return std::make_unique<GpuKernelTimer>(multiprocessors, l2_bytes);
}

}  // namespace tandem
