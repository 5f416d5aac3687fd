#pragma once

#include <array>
#include <string>
#include <vector>

#include "tests/cuda/operation_cases.h"

namespace tandem::studies {

// The cases by file of operations, and what they are made of.

std::vector<OperationCase> copy_cases();
std::vector<OperationCase> attention_merge_cases();
std::vector<OperationCase> cross_entropy_cases();
std::vector<OperationCase> elementwise_cases();
std::vector<OperationCase> embedding_cases();
std::vector<OperationCase> cast_cases();
std::vector<OperationCase> activation_cases();
std::vector<OperationCase> adam_cases();
std::vector<OperationCase> expert_cases();
std::vector<OperationCase> heads_cases();
std::vector<OperationCase> norm_cases();
std::vector<OperationCase> mamba_cases();
std::vector<OperationCase> lightning_cases();
std::vector<OperationCase> gemm_cases();
std::vector<OperationCase> grouped_gemm_cases();
std::vector<OperationCase> unfused_attention_cases();
std::vector<OperationCase> dropout_cases();
std::vector<OperationCase> bias_cases();
std::vector<OperationCase> compression_cases();
std::vector<OperationCase> attention_sink_cases();
std::vector<OperationCase> muon_cases();
std::vector<OperationCase> adafactor_cases();
std::vector<OperationCase> attention_cases();
std::vector<OperationCase> attention_backward_cases();
std::vector<OperationCase> sparse_attention_cases();
std::vector<OperationCase> head_gemm_cases();
std::vector<OperationCase> compressed_keys_cases();
std::vector<OperationCase> hyper_connection_cases();

inline constexpr std::array trained_types{DType::f32, DType::bf16, DType::f16};

/// Numbers between -1 and 1, or as far from 0 as `width`; the same for the same seed.
std::vector<float> random_numbers(const Shape& shape, unsigned seed, float width = 1);
std::vector<std::int32_t> random_integers(const Shape& shape, std::int32_t below, unsigned seed);

CaseOperand read(const Shape& shape, DType type, unsigned seed);
CaseOperand read(const Shape& shape, DType type, std::vector<float> numbers);
CaseOperand read_integers(const Shape& shape, std::vector<std::int32_t> integers);
CaseOperand write(const Shape& shape, DType type);
CaseOperand update(const Shape& shape, DType type, unsigned seed);
CaseOperand update(const Shape& shape, DType type, std::vector<float> numbers);

/// The tolerance of a product that is added to numbers of this type: cuBLASLt rounds the product to the type first (seen of 13.1
/// on an H200), and the product is at most twice as large as what it is added to or gives.
double rounding_before_adding(DType type);

/// The same case on views that no vector can be loaded from.
OperationCase skewed(OperationCase c);

/// A name for a case, such as norm_rms_bf16.
template <typename... Parts>
std::string join_name(const std::string& first, const Parts&... parts) {
  std::string name = first;
  const auto append = [&](const auto& part) {
    name += "_";
    if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>)
      name += std::to_string(part);
    else
      name += part;
  };
  (append(parts), ...);
  return name;
}

}  // namespace tandem::studies
