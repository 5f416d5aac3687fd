#include "runtime/cuda/module/cublas_lt.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/event_timer.h"
#include "runtime/cuda/module/say_once.h"

namespace tandem {
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(std::string(call) + ": " + cublasLtGetStatusString(status));
}

cudaDataType_t cuda_type(DType type) {
  switch (type) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::f16:
      return CUDA_R_16F;
    case DType::f8:
      return CUDA_R_8F_E4M3;
    case DType::i32:
    case DType::u8:
    case DType::f4:
      break;
  }
  throw std::logic_error("cuBLASLt multiplies no " + std::string(name_of(type)));
}

cublasLtMatrixLayoutOpaque_t layout_of(const ColumnMajorMatrix& matrix, DType type, std::int32_t count) {
  cublasLtMatrixLayoutOpaque_t layout{};
  check(cublasLtMatrixLayoutInit(&layout, cuda_type(type), static_cast<std::uint64_t>(matrix.rows),
                                 static_cast<std::uint64_t>(matrix.columns), matrix.leading),
        "cublasLtMatrixLayoutInit");
  const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
    check(cublasLtMatrixLayoutSetAttribute(&layout, attribute, &value, sizeof(value)), "cublasLtMatrixLayoutSetAttribute");
  };
  if (count > 1) {
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, count);
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, matrix.step);
  }
  return layout;
}

cublasLtMatmulDescOpaque_t operation_of(const Matmul& matmul, const MatmulData& data) {
  cublasLtMatmulDescOpaque_t operation{};
  check(cublasLtMatmulDescInit(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescInit");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulDescSetAttribute(&operation, attribute, &value, sizeof(value)), "cublasLtMatmulDescSetAttribute");
  };
  const auto transpose = [](const ColumnMajorMatrix& matrix) { return matrix.transposed ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(CUBLASLT_MATMUL_DESC_TRANSA, transpose(matmul.product.first));
  set(CUBLASLT_MATMUL_DESC_TRANSB, transpose(matmul.product.second));
  if (matmul.operands == DType::f8) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, data.first_scale);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, data.second_scale);
  }
  return operation;
}

/// A product as cuBLASLt's calls take it.
struct Descriptors {
  cublasLtMatmulDescOpaque_t operation;
  cublasLtMatrixLayoutOpaque_t first, second, result;

  Descriptors(const Matmul& matmul, const MatmulData& data)
      : operation(operation_of(matmul, data)),
        first(layout_of(matmul.product.first, matmul.operands, matmul.product.count)),
        second(layout_of(matmul.product.second, matmul.operands, matmul.product.count)),
        result(layout_of(matmul.product.result, matmul.result, matmul.product.count)) {}
};

std::vector<cublasLtMatmulAlgo_t> advised_algorithms(cublasLtHandle_t handle, const Matmul& matmul, const MatmulData& data,
                                                     std::size_t workspace_bytes, int most) {
  cublasLtMatmulPreferenceOpaque_t preference{};
  check(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit");
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(&preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  for (const auto matrix : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                            CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    set(matrix, static_cast<std::uint32_t>(matmul.alignment));

  Descriptors descriptors(matmul, data);
  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<std::size_t>(most));
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(handle, &descriptors.operation, &descriptors.first, &descriptors.second, &descriptors.result,
                                     &descriptors.result, &preference, most, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  results.resize(static_cast<std::size_t>(found));
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const auto& result : results)
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  return algorithms;
}

void multiply(cublasLtHandle_t handle, const Queue& queue, const Matmul& matmul, const MatmulData& data,
              std::size_t workspace_bytes, const cublasLtMatmulAlgo_t& algorithm) {
  if (queue.scratch_bytes < workspace_bytes) throw std::logic_error("a product needs more scratch than the queue has");
  const float factor = data.factor, of_old_result = matmul.accumulate ? 1 : 0;
  Descriptors descriptors(matmul, data);
  check(cublasLtMatmul(handle, &descriptors.operation, &factor, data.first, &descriptors.first, data.second, &descriptors.second,
                       &of_old_result, data.result, &descriptors.result, data.result, &descriptors.result, &algorithm,
                       queue.scratch, workspace_bytes, queue.stream),
        "cublasLtMatmul");
}

std::string text_of(const Matmul& matmul) {
  const auto& [m, n, k] = matmul.product.size;
  return std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " in " +
         std::string(name_of(matmul.operands)) + " to " + std::string(name_of(matmul.result));
}

}  // namespace

CublasLt& CublasLt::of_this_device() {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, CublasLt>;
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const std::lock_guard lock(mutex);
  return devices.try_emplace(device, device).first->second;
}

CublasLt::CublasLt(int device) {
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  multiplies_fp8_ = major * 10 + minor >= 89;
  workspace_bytes_ = major >= 9 ? std::size_t{32} << 20U : std::size_t{4} << 20U;
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

CublasLt::Choice& CublasLt::choice_of(const Matmul& matmul, const MatmulData& data) {
  const auto [choice, is_new] = choices_.try_emplace(matmul);
  if (is_new) {
    const auto advised = advised_algorithms(handle_, matmul, data, workspace_bytes_, 1);
    if (!advised.empty()) choice->second.algorithm = advised.front();
  }
  return choice->second;
}

bool CublasLt::supports(const Matmul& matmul, const MatmulData& data) {
  const std::lock_guard lock(mutex_);
  return choice_of(matmul, data).algorithm.has_value();
}

void CublasLt::run(const Queue& queue, const Matmul& matmul, const MatmulData& data) {
  std::optional<cublasLtMatmulAlgo_t> algorithm;
  {
    const std::lock_guard lock(mutex_);
    algorithm = choice_of(matmul, data).algorithm;
  }
  if (!algorithm) throw std::runtime_error("cuBLASLt has no algorithm for " + text_of(matmul));
  multiply(handle_, queue, matmul, data, workspace_bytes_, *algorithm);
}

void CublasLt::choose(const Queue& queue, const Matmul& matmul, const MatmulData& data) {
  constexpr int load_and_estimate = 2, fewest_repetitions = fewest_trials - load_and_estimate, most_repetitions = 10;
  constexpr float long_enough = 2;     // ms: an event is off by a thousandth of it
  constexpr float worthwhile = 0.98F;  // of two that differ by less, chance would choose, and differently in each run
  const std::lock_guard lock(mutex_);
  Choice& choice = choice_of(matmul, data);
  if (choice.by_trial || !choice.algorithm) return;
  choice.algorithm.reset();
  choice.by_trial = true;
  EventTimer timer(queue.stream);
  float best = std::numeric_limits<float>::infinity();
  for (const cublasLtMatmulAlgo_t& algorithm : advised_algorithms(handle_, matmul, data, workspace_bytes_, most_algorithms)) {
    try {
      const auto time_of = [&](int products) {
        return timer.milliseconds([&] {
          for (int i = 0; i < products; ++i) multiply(handle_, queue, matmul, data, workspace_bytes_, algorithm);
        });
      };
      time_of(1);  // loads the kernel
      const int repetitions =
          static_cast<int>(std::clamp<float>(long_enough / std::max(time_of(1), 1e-3F), fewest_repetitions, most_repetitions));
      const float time = time_of(repetitions) / static_cast<float>(repetitions);
      if (time < best * worthwhile) {
        best = time;
        choice.algorithm = algorithm;
      }
    } catch (const std::runtime_error& error) {
      static_cast<void>(cudaGetLastError());
      say_once("an algorithm of cuBLASLt for " + text_of(matmul) + " is passed over: " + error.what());
    }
  }
}

}  // namespace tandem
