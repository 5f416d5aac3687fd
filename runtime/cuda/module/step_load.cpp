#include "runtime/cuda/module/step_load.h"

#include <cmath>
#include <string>
#include <vector>

#include "runtime/contents/initial_values.h"
#include "runtime/cuda/module/event_timer.h"
#include "runtime/cuda/module/gpu_contents.h"

namespace tandem {
namespace {

constexpr std::int64_t size = 8192;  // of a product: it fills every GPU, and its matrices no cache
constexpr std::size_t bytes_of_matrix = size * size * 2;
constexpr int products_of_graph = 2;  // 3.3 ms on an H200
constexpr Seconds until_clocks_settle = 0.3;
constexpr Seconds first_fall = 1;  // of clocks, before which they are higher than ever after

}  // namespace

Seconds time_of_mean_clocks() { return 4; }

StepLoad::StepLoad(int multiprocessors) : queue_(multiprocessors, 0), numbers_(3 * bytes_of_matrix) {
  const Shape shape(size, size);
  const std::vector<OperandType> types(3, {shape, DType::bf16});
  std::vector<DeviceTensor> matrices;
  for (std::size_t i = 0; i < types.size(); ++i)
    matrices.push_back({.data = numbers_.data() + i * bytes_of_matrix, .shape = shape, .dtype = DType::bf16});
  const OpAttributes attributes = GemmAttributes{.transpose_a = false, .transpose_b = true};
  const DeviceOperation& product = device_operation(OpKind::gemm);
  Queue& queue = queue_.get();
  queue_.reserve(product.scratch(types, attributes));
  product.prepare(queue, types, attributes);
  GpuContentsWriter writer(queue, [&](BufferId id) { return matrices[id]; });
  constexpr std::uint64_t seed = 7;
  constexpr std::int64_t between_minus_one_and_one = 3;  // "columns" of InitialParameter
  for (BufferId i = 0; i < 2; ++i) {
    const InitialParameter values(seed, "load " + std::to_string(i), between_minus_one_and_one);
    writer.write(Stretch{i, 0, shape.elements()}, ShardValues{.values = values, .columns = size});
  }
  const auto multiply = [&](int products) {
    for (int i = 0; i < products; ++i) product.kernel(queue, matrices, attributes);
  };
  multiply(1);
  of_graph_ = EventTimer(queue.stream).milliseconds([&] { multiply(products_of_graph); }) * 1e-3;
  check(cudaStreamBeginCapture(queue.stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  multiply(products_of_graph);
  cudaGraph_t captured = nullptr;
  check(cudaStreamEndCapture(queue.stream, &captured), "cudaStreamEndCapture");
  const cudaError_t made = cudaGraphInstantiate(&graph_, captured, 0);
  cudaGraphDestroy(captured);
  check(made, "cudaGraphInstantiate");
  put_beside(until_clocks_settle);
  wait();
}

StepLoad::~StepLoad() { cudaGraphExecDestroy(graph_); }

Seconds StepLoad::put(const Queue& queue, Seconds at_least) const {
  const auto times = static_cast<int>(std::ceil(at_least / of_graph_));
  for (int i = 0; i < times; ++i) put_one(queue);
  return times * of_graph_;
}

void StepLoad::put_one(const Queue& queue) const { check(cudaGraphLaunch(graph_, queue.stream), "cudaGraphLaunch"); }

Seconds StepLoad::mean() {
  if (mean_) return *mean_;
  const Queue& queue = queue_.get();
  put(queue, first_fall);
  const auto times = static_cast<int>(std::ceil(time_of_mean_clocks() / of_graph_));
  mean_ = EventTimer(queue.stream).milliseconds([&] {
    for (int i = 0; i < times; ++i) put_one(queue);
  }) * 1e-3 /
          times;
  return *mean_;
}

void StepLoad::put_beside(Seconds at_least) { put(queue_.get(), at_least); }

void StepLoad::wait() { check(cudaStreamSynchronize(queue_.get().stream), "a load"); }

}  // namespace tandem
