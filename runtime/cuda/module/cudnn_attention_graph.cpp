#include "runtime/cuda/module/cudnn_attention_graph.h"

#include <limits>

// The operations, their order and their types are those that cuDNN's engines for fused attention look for: a graph that says the
// same in other words has no engine. NVIDIA's own front end describes them (github.com/NVIDIA/cudnn-frontend,
// docs/operations/Attention.md), and tests have such graphs compiled for an H200 that is not there.
namespace tandem {
namespace {

using Dimensions = CudnnGraph::Dimensions;

cudnnDataType_t cudnn_type(DType type) { return type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF; }

/// The sizes of an attention, and how its tensors lie: [positions, micro-batch, heads, width] as cuDNN's [micro-batch, heads,
/// positions, width].
class Layout {
 public:
  const cudnnDataType_t type;

  explicit Layout(const FusedAttention& attention) : type(cudnn_type(attention.type)), a_(attention) {}

  Dimensions scores() const { return {a_.micro_batch, a_.heads, a_.queries, a_.keys}; }
  /// Adds the transpose of scores, in the order in which the scores lie, rounded to the operands' type.
  CudnnTensor transposed_scores(CudnnGraph& graph) const {
    const Dimensions straight = CudnnGraph::dense(scores());
    return graph.inside({a_.micro_batch, a_.heads, a_.keys, a_.queries}, {straight[0], straight[1], straight[3], straight[2]},
                        type);
  }
  Dimensions per_query(std::int64_t width) const { return {a_.micro_batch, a_.heads, a_.queries, width}; }
  Dimensions per_key_of_all_heads(std::int64_t width) const { return {a_.micro_batch, a_.heads, a_.keys, width}; }

  CudnnTensor query(CudnnGraph& graph) const { return add(graph, a_.heads, a_.queries, a_.head_dim); }
  CudnnTensor output(CudnnGraph& graph) const { return add(graph, a_.heads, a_.queries, a_.value_dim); }
  CudnnTensor key(CudnnGraph& graph) const { return add(graph, a_.kv_heads, a_.keys, a_.head_dim); }
  CudnnTensor value(CudnnGraph& graph) const { return add(graph, a_.kv_heads, a_.keys, a_.value_dim); }
  CudnnTensor transposed_key(CudnnGraph& graph) const { return add_transposed(graph, a_.kv_heads, a_.keys, a_.head_dim); }
  CudnnTensor transposed_value(CudnnGraph& graph) const { return add_transposed(graph, a_.kv_heads, a_.keys, a_.value_dim); }
  /// Adds, inside the kernel, `transposed_key` in the order in which it lies.
  CudnnTensor straight_key(CudnnGraph& graph) const {
    return graph.inside({a_.micro_batch, a_.kv_heads, a_.keys, a_.head_dim}, strides(a_.kv_heads, a_.head_dim), type);
  }
  /// Adds one fp32 number for each query.
  CudnnTensor statistics(CudnnGraph& graph) const {
    return graph.in_memory(CUDNN_DATA_FLOAT, per_query(1), {a_.heads * a_.queries, a_.queries, 1, 1});
  }

 private:
  CudnnTensor add(CudnnGraph& graph, std::int64_t heads, std::int64_t positions, std::int64_t width) const {
    return graph.in_memory(type, {a_.micro_batch, heads, positions, width}, strides(heads, width));
  }
  CudnnTensor add_transposed(CudnnGraph& graph, std::int64_t heads, std::int64_t positions, std::int64_t width) const {
    const Dimensions straight = strides(heads, width);
    return graph.in_memory(type, {a_.micro_batch, heads, width, positions}, {straight[0], straight[1], straight[3], straight[2]});
  }
  Dimensions strides(std::int64_t heads, std::int64_t width) const {
    return {heads * width, width, a_.micro_batch * heads * width, 1};
  }

  const FusedAttention& a_;
};

/// A graph under construction.
class Builder {
 public:
  Builder(const CudnnLibrary& cudnn, const FusedAttention& attention)
      : causal_(attention.causal), layout_(attention), result_{.graph = CudnnGraph(cudnn)} {
    result_.scale = graph_.by_value();
  }

  CudnnAttentionGraph forward();
  CudnnAttentionGraph backward(const FusedAttention& attention);

 private:
  bool causal_;
  Layout layout_;
  CudnnAttentionGraph result_;
  CudnnGraph& graph_ = result_.graph;

  CudnnTensor constant(float value) {
    result_.constants.emplace_back(graph_.by_value(), value);
    return result_.constants.back().first;
  }

  CudnnTensor inside_scores(cudnnDataType_t type = CUDNN_DATA_FLOAT) { return graph_.inside(layout_.scores(), type); }
  CudnnTensor inside_numbers() { return graph_.inside(layout_.per_query(1)); }

  CudnnTensor combined(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b) {
    const CudnnTensor result = inside_scores();
    graph_.pointwise(mode, x, b, result);
    return result;
  }

  CudnnTensor scores(const CudnnTensor& q, const CudnnTensor& transposed_k) {
    const CudnnTensor products = inside_scores();
    graph_.matmul(q, transposed_k, products);
    return combined(CUDNN_POINTWISE_MUL, products, result_.scale);
  }

  /// Lowers scores whose key comes after the query so far that nothing is left of their exponentials.
  CudnnTensor masked(const CudnnTensor& scores) {
    if (!causal_) return scores;
    constexpr std::int64_t row = 2, column = 3;
    const CudnnTensor query = inside_scores(CUDNN_DATA_INT32), key = inside_scores(CUDNN_DATA_INT32);
    const CudnnTensor sees = inside_scores(CUDNN_DATA_BOOLEAN), result = inside_scores();
    graph_.index(scores, row, query);
    graph_.index(scores, column, key);
    graph_.pointwise(CUDNN_POINTWISE_CMP_GE, query, key, sees);
    graph_.select(sees, scores, constant(std::numeric_limits<float>::lowest()), result);
    return result;
  }

  CudnnTensor transposed(const CudnnTensor& scores) {
    const CudnnTensor result = layout_.transposed_scores(graph_);
    graph_.reshape(scores, result);
    return result;
  }

  /// Multiplies `result` = a b, summed over the query heads that read one key head.
  void multiply_for_keys(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& result) {
    const CudnnGraph::Dimensions of_all_heads = layout_.per_key_of_all_heads(result.size[3]);
    if (of_all_heads == result.size) return graph_.matmul(a, b, result);
    const CudnnTensor parts = graph_.inside(of_all_heads, layout_.type);
    graph_.matmul(a, b, parts);
    graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, parts, result);
  }
};

CudnnAttentionGraph Builder::forward() {
  const CudnnTensor q = layout_.query(graph_), k = layout_.transposed_key(graph_), v = layout_.value(graph_);
  const CudnnTensor out = layout_.output(graph_), lse = layout_.statistics(graph_);
  result_.operands = {q, k, v, out, lse};

  const CudnnTensor seen = masked(scores(q, k));
  const CudnnTensor largest = inside_numbers(), sum = inside_numbers(), log_of_sum = inside_numbers();
  graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, seen, largest);
  const CudnnTensor lowered = combined(CUDNN_POINTWISE_SUB, seen, largest);
  const CudnnTensor exponentials = inside_scores(), probabilities = inside_scores(layout_.type);
  graph_.pointwise(CUDNN_POINTWISE_EXP, lowered, exponentials);
  graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponentials, sum);
  graph_.pointwise(CUDNN_POINTWISE_LOG, sum, log_of_sum);
  graph_.pointwise(CUDNN_POINTWISE_ADD, largest, log_of_sum, lse);
  graph_.pointwise(CUDNN_POINTWISE_DIV, exponentials, sum, probabilities);
  graph_.matmul(probabilities, v, out);
  return std::move(result_);
}

CudnnAttentionGraph Builder::backward(const FusedAttention& attention) {
  const CudnnTensor q = layout_.query(graph_), k = layout_.transposed_key(graph_), v = layout_.transposed_value(graph_);
  const CudnnTensor out = layout_.output(graph_), lse = layout_.statistics(graph_), dout = layout_.output(graph_);
  const CudnnTensor dq = layout_.query(graph_), dk = layout_.key(graph_), dv = layout_.value(graph_);
  result_.operands = {q, k, v, out, lse, dout, dq, dk, dv};

  // delta = the sum of dout out over each row, times one: where there is dropout, its scale.
  const CudnnTensor delta = layout_.statistics(graph_);
  const CudnnTensor products = graph_.inside(layout_.per_query(attention.value_dim)), row_sums = inside_numbers();
  graph_.pointwise(CUDNN_POINTWISE_MUL, dout, out, products);
  graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, row_sums);
  graph_.pointwise(CUDNN_POINTWISE_MUL, row_sums, constant(1), delta);

  // p = exp(scale q k^T - lse), dv = p^T dout
  const CudnnTensor probabilities = inside_scores();
  graph_.pointwise(CUDNN_POINTWISE_EXP, masked(combined(CUDNN_POINTWISE_SUB, scores(q, k), lse)), probabilities);
  multiply_for_keys(transposed(probabilities), dout, dv);

  // ds = scale p (dout v^T - delta), dk = ds^T q, dq = ds k
  const CudnnTensor dp = inside_scores(), ds = inside_scores(layout_.type);
  graph_.matmul(dout, v, dp);
  const CudnnTensor unscaled = combined(CUDNN_POINTWISE_MUL, combined(CUDNN_POINTWISE_SUB, dp, delta), probabilities);
  graph_.pointwise(CUDNN_POINTWISE_MUL, unscaled, result_.scale, ds);
  multiply_for_keys(transposed(ds), q, dk);
  const CudnnTensor straight_k = layout_.straight_key(graph_);
  graph_.reshape(k, straight_k);
  const CudnnGraph::Dimensions dense_query = layout_.per_query(attention.head_dim);
  const CudnnTensor dq_sum = graph_.in_memory(CUDNN_DATA_FLOAT, dense_query, CudnnGraph::dense(dense_query));
  graph_.matmul(ds, straight_k, dq_sum);
  graph_.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sum, dq);
  result_.scratch = {delta, dq_sum};
  return std::move(result_);
}

}  // namespace

CudnnAttentionGraph cudnn_attention_graph(const CudnnLibrary& cudnn, const FusedAttention& attention,
                                          AttentionDirection direction) {
  Builder builder(cudnn, attention);
  return direction == AttentionDirection::forward ? builder.forward() : builder.backward(attention);
}

}  // namespace tandem
