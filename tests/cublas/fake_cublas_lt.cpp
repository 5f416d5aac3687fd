#include "tests/cublas/fake_cublas_lt.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>

namespace tandem::cublas_lt_test {

FakeCublasLt& fake() {
  static FakeCublasLt one;
  return one;
}

namespace {

float clock_now = 0;

int number_of(const cublasLtMatmulAlgo_t& algorithm) { return static_cast<int>(algorithm.data[0]); }

}  // namespace
}  // namespace tandem::cublas_lt_test

using namespace tandem::cublas_lt_test;

extern "C" {

const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed" : "error";
}
cublasStatus_t cublasLtCreate(cublasLtHandle_t*) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t, size_t, cudaDataType, uint64_t, uint64_t, int64_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t, cublasLtMatrixLayoutAttribute_t, const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t, size_t, cublasComputeType_t, cudaDataType_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t, const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t, size_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*,
                                                    size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int most, cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  const std::vector<int>& advised = fake().advised;
  *found = std::min(most, static_cast<int>(advised.size()));
  for (int i = 0; i < *found; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<uint64_t>(advised[static_cast<std::size_t>(i)]);
    results[i].state = CUBLAS_STATUS_SUCCESS;
  }
  return advised.empty() ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void*, cublasLtMatrixLayout_t,
                              const void*, cublasLtMatrixLayout_t, const void*, const void*, cublasLtMatrixLayout_t, void*,
                              cublasLtMatrixLayout_t, const cublasLtMatmulAlgo_t* algorithm, void*, size_t, cudaStream_t) {
  const int number = number_of(*algorithm);
  if (std::ranges::find(fake().failing, number) != fake().failing.end()) return CUBLAS_STATUS_EXECUTION_FAILED;
  fake().ran.push_back(number);
  clock_now += fake().milliseconds.at(static_cast<std::size_t>(number)) / 10;
  return CUBLAS_STATUS_SUCCESS;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "error"; }
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new float(0));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<float*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  *reinterpret_cast<float*>(event) = clock_now;
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = *reinterpret_cast<float*>(end) - *reinterpret_cast<float*>(begin);
  return cudaSuccess;
}

}  // extern "C"
