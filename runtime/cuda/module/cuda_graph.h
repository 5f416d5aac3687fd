#pragma once

#include <cstddef>
#include <utility>

#include "runtime/cuda/module/streams.h"

namespace tandem {

/// A captured graph. It goes to the GPU when it is first launched: cudaGraphUpload of driver 580.159 crashes on a graph with
/// NCCL's kernels and what the host does for them between machines.
class CudaGraph {
 public:
  CudaGraph() = default;
  explicit CudaGraph(cudaGraph_t captured) {
    std::size_t nodes = 0;
    const cudaError_t counted = cudaGraphGetNodes(captured, nullptr, &nodes);
    const cudaError_t made = cudaGraphInstantiate(&graph_, captured, 0);
    cudaGraphDestroy(captured);
    check(counted, "cudaGraphGetNodes");
    check(made, "cudaGraphInstantiate");
    nodes_ = nodes;
  }
  CudaGraph(CudaGraph&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)), nodes_(other.nodes_) {}
  CudaGraph& operator=(CudaGraph&& other) noexcept {
    std::swap(graph_, other.graph_);
    nodes_ = other.nodes_;
    return *this;
  }
  ~CudaGraph() {
    if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
  }
  void launch(const Queue& queue) const { check(cudaGraphLaunch(graph_, queue.stream), "cudaGraphLaunch"); }
  bool exists() const { return graph_ != nullptr; }
  std::size_t nodes() const { return nodes_; }

 private:
  cudaGraphExec_t graph_ = nullptr;
  std::size_t nodes_ = 0;
};

/// Captures what is put into a stream, and into those that wait for it, while it lives. What libraries and kernels load or
/// allocate at their first use, which may be here, is allowed meanwhile (relaxed); nothing of it belongs into the graph.
class Capture {
 public:
  explicit Capture(const Queue& queue) : stream_(queue.stream) {
    check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
  }
  Capture(const Capture&) = delete;
  ~Capture() {
    if (stream_ == nullptr) return;
    cudaGraph_t broken = nullptr;
    if (cudaStreamEndCapture(stream_, &broken) == cudaSuccess) cudaGraphDestroy(broken);
    cudaGetLastError();
  }

  /// Ends the capture, and makes a graph of it that can be launched.
  CudaGraph finish() {
    cudaGraph_t captured = nullptr;
    check(cudaStreamEndCapture(std::exchange(stream_, nullptr), &captured), "cudaStreamEndCapture");
    return CudaGraph(captured);
  }

 private:
  cudaStream_t stream_;
};

}  // namespace tandem
