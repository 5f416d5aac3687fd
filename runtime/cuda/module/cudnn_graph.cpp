#include "runtime/cuda/module/cudnn_graph.h"

#include <stdexcept>
#include <utility>

namespace tandem {

CudnnDescriptor::CudnnDescriptor(const CudnnLibrary& cudnn, cudnnBackendDescriptorType_t type) : cudnn_(&cudnn) {
  cudnn.check(cudnn.cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

CudnnDescriptor::CudnnDescriptor(CudnnDescriptor&& other) noexcept
    : cudnn_(other.cudnn_), descriptor_(std::exchange(other.descriptor_, nullptr)) {}

CudnnDescriptor::~CudnnDescriptor() {
  if (descriptor_ != nullptr) cudnn_->cudnnBackendDestroyDescriptor(descriptor_);
}

void CudnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
                          const void* values) {
  cudnn_->check(cudnn_->cudnnBackendSetAttribute(descriptor_, name, type, count, values), "cudnnBackendSetAttribute");
}

void CudnnDescriptor::finalize() { cudnn_->check(cudnn_->cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize"); }

std::int64_t CudnnDescriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0, count = 0;
  cudnn_->check(cudnn_->cudnnBackendGetAttribute(descriptor_, name, CUDNN_TYPE_INT64, 1, &count, &value),
                "cudnnBackendGetAttribute");
  return value;
}

CudnnPlan::CudnnPlan(const CudnnLibrary& cudnn, CudnnDescriptor plan)
    : cudnn_(&cudnn),
      plan_(std::move(plan)),
      workspace_bytes_(static_cast<std::size_t>(plan_.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE))) {}

void CudnnPlan::run(cudnnHandle_t handle, const CudnnBindings& bindings, void* workspace) const {
  std::vector<std::int64_t> numbers;
  std::vector<void*> addresses;
  for (const auto& [number, address] : bindings) {
    numbers.push_back(number);
    addresses.push_back(address);
  }
  CudnnDescriptor pack(*cudnn_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(numbers.size());
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, numbers.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, addresses.data());
  pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  pack.finalize();
  cudnn_->check(cudnn_->cudnnBackendExecute(handle, plan_.get(), pack.get()), "cudnnBackendExecute");
}

CudnnGraph::Tensor CudnnGraph::add_tensor(cudnnDataType_t type, const Dimensions& size, const Dimensions& strides, bool is_inside,
                                          bool is_by_value) {
  constexpr std::int64_t alignment = 16;
  const auto number = static_cast<std::int64_t>(tensors_.size());
  CudnnDescriptor& tensor = tensors_.emplace_back(cudnn_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, number);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, size.size(), size.data());
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.size(), strides.data());
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment);
  tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_inside);
  tensor.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, is_by_value);
  tensor.finalize();
  return {number, tensor.get(), size};
}

CudnnGraph::Tensor CudnnGraph::in_memory(cudnnDataType_t type, const Dimensions& size, const Dimensions& strides) {
  return add_tensor(type, size, strides, false, false);
}

CudnnGraph::Tensor CudnnGraph::by_value() { return add_tensor(CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, false, true); }

CudnnGraph::Tensor CudnnGraph::inside(const Dimensions& size, const Dimensions& strides, cudnnDataType_t type) {
  return add_tensor(type, size, strides, true, false);
}

void CudnnGraph::add_operation(cudnnBackendDescriptorType_t type, const Links& links) {
  CudnnDescriptor& operation = operations_.emplace_back(cudnn_, type);
  for (const auto& [name, descriptor] : links) operation.set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, descriptor);
  operation.finalize();
}

void CudnnGraph::add_pointwise(cudnnPointwiseMode_t how, const Tensor& x, const Tensor& result, Links others, std::int64_t axis) {
  CudnnDescriptor& mode = modes_.emplace_back(cudnn_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, how);
  mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  if (axis >= 0) mode.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
  mode.finalize();
  others.insert(others.end(), {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode.get()},
                               {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
                               {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, result.descriptor}});
  add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, others);
}

void CudnnGraph::matmul(const Tensor& a, const Tensor& b, const Tensor& result) {
  CudnnDescriptor& mode = modes_.emplace_back(cudnn_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  mode.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  mode.finalize();
  add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_MATMUL_DESC, mode.get()},
                                                            {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor},
                                                            {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor},
                                                            {CUDNN_ATTR_OPERATION_MATMUL_CDESC, result.descriptor}});
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& result) {
  add_pointwise(mode, x, result, {});
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& b, const Tensor& result) {
  add_pointwise(mode, x, result, {{CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.descriptor}});
}

void CudnnGraph::index(const Tensor& like, std::int64_t axis, const Tensor& result) {
  add_pointwise(CUDNN_POINTWISE_GEN_INDEX, like, result, {}, axis);
}

void CudnnGraph::select(const Tensor& condition, const Tensor& x, const Tensor& otherwise, const Tensor& result) {
  add_pointwise(CUDNN_POINTWISE_BINARY_SELECT, x, result,
                {{CUDNN_ATTR_OPERATION_POINTWISE_BDESC, otherwise.descriptor},
                 {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, condition.descriptor}});
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& result) {
  CudnnDescriptor& mode = modes_.emplace_back(cudnn_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  mode.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, op);
  mode.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  mode.finalize();
  add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, mode.get()},
                                                               {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor},
                                                               {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result.descriptor}});
}

void CudnnGraph::reshape(const Tensor& x, const Tensor& result) {
  add_operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor}, {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, result.descriptor}});
}

CudnnPlan CudnnGraph::compile(const CudnnTarget& target) {
  CudnnDescriptor graph(cudnn_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor& operation : operations_) operations.push_back(operation.get());
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<std::int64_t>(operations.size()),
            operations.data());
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.finalize();

  CudnnDescriptor heuristic(cudnn_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, graph.get());
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.properties != nullptr)
    heuristic.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, target.properties);
  heuristic.finalize();
  std::int64_t found = 0;
  cudnn_.check(cudnn_.cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                               &found, nullptr),
               "cudnnBackendGetAttribute");

  std::vector<CudnnDescriptor> advised;
  std::vector<cudnnBackendDescriptor_t> handed_over;
  for (std::int64_t i = 0; i < found; ++i)
    handed_over.push_back(advised.emplace_back(cudnn_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  cudnn_.check(cudnn_.cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                               found, &found, handed_over.data()),
               "cudnnBackendGetAttribute");
  std::string why = "cuDNN has no engine for this graph";
  for (const CudnnDescriptor& engine : advised) {
    try {
      CudnnDescriptor plan(cudnn_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, engine.get());
      if (target.handle != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
      if (target.properties != nullptr)
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, target.properties);
      plan.finalize();
      return {cudnn_, std::move(plan)};
    } catch (const std::runtime_error& error) {
      why = error.what();
    }
  }
  throw std::runtime_error(why);
}

}  // namespace tandem
