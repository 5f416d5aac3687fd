#pragma once

#include <utility>
#include <vector>

#include "runtime/cuda/fused_attention.h"
#include "runtime/cuda/module/cudnn_attention.h"
#include "runtime/cuda/module/cudnn_graph.h"

namespace tandem {

using CudnnTensor = CudnnGraph::Tensor;

/// The operation attention, or its backward, as a graph, and what it must be given when it runs.
struct CudnnAttentionGraph {
  CudnnGraph graph;
  std::vector<CudnnTensor> operands = {};                     ///< the operation's, in its order
  std::vector<CudnnTensor> scratch = {};                      ///< fp32, written before they are read
  CudnnTensor scale = {};                                     ///< of the scores; by value
  std::vector<std::pair<CudnnTensor, float>> constants = {};  ///< by value
};

CudnnAttentionGraph cudnn_attention_graph(const CudnnLibrary& cudnn, const FusedAttention& attention,
                                          AttentionDirection direction);

}  // namespace tandem
