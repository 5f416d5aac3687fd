#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "runtime/cuda/module/cudnn_library.h"

namespace tandem {

/// A descriptor of cuDNN's graph API, owned.
class CudnnDescriptor {
 public:
  CudnnDescriptor(const CudnnLibrary& cudnn, cudnnBackendDescriptorType_t type);
  CudnnDescriptor(CudnnDescriptor&& other) noexcept;
  CudnnDescriptor& operator=(CudnnDescriptor&&) = delete;
  ~CudnnDescriptor();

  cudnnBackendDescriptor_t get() const { return descriptor_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count, const void* values);
  template <typename Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value) {
    set(name, type, 1, &value);
  }
  /// Finalizes the descriptor, as cuDNN calls it: its attributes are complete, and hold together.
  void finalize();
  std::int64_t number(cudnnBackendAttributeName_t name) const;

 private:
  const CudnnLibrary* cudnn_;
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// The GPU for which a graph is compiled: that of a handle or, without one, a GPU that is described (a descriptor of its
/// properties).
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

/// The address of each tensor of a graph when the graph runs, by the tensor's number. Tensors given by value lie on the host.
using CudnnBindings = std::map<std::int64_t, void*>;

/// A graph that was compiled.
class CudnnPlan {
 public:
  CudnnPlan(const CudnnLibrary& cudnn, CudnnDescriptor plan);
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  /// Puts it on the handle's stream. `workspace` is aligned to 256 bytes.
  void run(cudnnHandle_t handle, const CudnnBindings& bindings, void* workspace) const;

 private:
  const CudnnLibrary* cudnn_;
  CudnnDescriptor plan_;
  std::size_t workspace_bytes_ = 0;
};

/// A graph of operations on tensors of four dimensions, as cuDNN's engines for fused attention know it: [micro-batch, heads,
/// rows, columns]. Everything between its inputs and outputs is fp32 and stays inside the kernel, unless said otherwise.
/// Arithmetic in fp32.
///
/// https://docs.nvidia.com/deeplearning/cudnn/latest/developer/graph-api.html
class CudnnGraph {
 public:
  using Dimensions = std::array<std::int64_t, 4>;

  struct Tensor {
    std::int64_t number = -1;
    cudnnBackendDescriptor_t descriptor = nullptr;
    Dimensions size{};
  };

  explicit CudnnGraph(const CudnnLibrary& cudnn) : cudnn_(cudnn) {}

  /// Adds a tensor in the GPU's memory, which is read from there or left there.
  Tensor in_memory(cudnnDataType_t type, const Dimensions& size, const Dimensions& strides);
  /// Adds one fp32 number, which is given when the graph runs.
  Tensor by_value();
  /// Adds a tensor inside the kernel, dense unless strides are given.
  Tensor inside(const Dimensions& size, cudnnDataType_t type = CUDNN_DATA_FLOAT) { return inside(size, dense(size), type); }
  Tensor inside(const Dimensions& size, const Dimensions& strides, cudnnDataType_t type);

  static Dimensions dense(const Dimensions& size) { return {size[1] * size[2] * size[3], size[2] * size[3], size[3], 1}; }

  void matmul(const Tensor& a, const Tensor& b, const Tensor& result);
  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& result);
  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b, const Tensor& result);
  /// Computes each element's index along `axis`.
  void index(const Tensor& like, std::int64_t axis, const Tensor& result);
  /// Takes `x` where `condition` holds, `otherwise` elsewhere.
  void select(const Tensor& condition, const Tensor& x, const Tensor& otherwise, const Tensor& result);
  /// Over the dimensions in which `result` has size 1, or is a divisor.
  void reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& result);
  void reshape(const Tensor& x, const Tensor& result);

  /// The first engine of the heuristic's that compiles it. Throws std::runtime_error when there is none.
  CudnnPlan compile(const CudnnTarget& target);

 private:
  const CudnnLibrary& cudnn_;
  std::vector<CudnnDescriptor> tensors_, modes_, operations_;

  Tensor add_tensor(cudnnDataType_t type, const Dimensions& size, const Dimensions& strides, bool is_inside, bool is_by_value);

  using Links = std::vector<std::pair<cudnnBackendAttributeName_t, cudnnBackendDescriptor_t>>;
  void add_operation(cudnnBackendDescriptorType_t type, const Links& links);
  /// `axis`: none where it is negative. `others`: the tensors beside `x` and `result`.
  void add_pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& result, Links others, std::int64_t axis = -1);
};

}  // namespace tandem
