// Kernels at the sizes of training, where a host can only look at samples.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <iostream>
#include <vector>

#include "runtime/base/hash.h"
#include "runtime/contents/initial_values.h"
#include "runtime/cuda/module/cublas_lt.h"
#include "runtime/cuda/module/cudnn_attention.h"
#include "runtime/cuda/module/gpu_contents.h"
#include "runtime/cuda/module/library_attention.h"
#include "runtime/cuda/module/number_types.h"
#include "runtime/cuda/module/read_back.h"
#include "runtime/cuda/module/streams.h"
#include "tests/gpu/gpu_runner.h"

namespace tandem::studies::gpu_large_kernels_test {
namespace {

class GpuLarge : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = no_gpu_reason(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// A tensor on the GPU. Its numbers are those of a parameter, rounded to its type; in fp8 its scale is 1.
class Tensor {
 public:
  Tensor(const OperandType& type, std::string name)
      : values_(data_seed, name, type.shape[type.shape.rank - 1U]),
        memory_(static_cast<std::size_t>(type.bytes()) + 256),
        tensor_{.data = memory_.data(), .shape = type.shape, .dtype = type.dtype} {
    if (type.dtype != DType::f8) return;
    const float one = 1;
    tensor_.scale = reinterpret_cast<float*>(memory_.data() + (type.bytes() + 3) / 4 * 4);
    check(cudaMemcpy(tensor_.scale, &one, sizeof one, cudaMemcpyHostToDevice), "cudaMemcpy");
    check(cudaDeviceSynchronize(), "cudaMemcpy");
  }

  void fill(Queue& queue) const {
    GpuContentsWriter writer(queue, [this](BufferId) { return tensor_; });
    const std::int64_t columns = tensor_.shape[tensor_.shape.rank - 1U];
    writer.write(Stretch{0, 0, tensor_.shape.elements()}, ShardValues{.values = values_, .columns = columns});
    check(cudaStreamSynchronize(queue.stream), "operands");
  }
  const DeviceTensor& on_gpu() const { return tensor_; }
  float number(std::int64_t row, std::int64_t column) const {
    const float value = values_.at(row, column);
    return tensor_.dtype == DType::bf16 ? to_float(from_float<Bf16>(value)) : to_float(from_float<F8>(value));
  }
  /// One element that the GPU has written, in bf16.
  float read(std::int64_t element) const {
    Bf16 bits{};
    check(cudaMemcpy(&bits, static_cast<std::byte*>(tensor_.data) + element * 2, sizeof bits, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    return to_float(bits);
  }
  std::vector<float> read_all() const {
    std::vector<float> numbers(static_cast<std::size_t>(tensor_.shape.elements()));
    read_back(tensor_, {numbers.data(), tensor_.shape});
    return numbers;
  }

 private:
  InitialParameter values_;
  GpuMemory memory_;
  DeviceTensor tensor_;
};

int multiprocessors() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  return properties.multiProcessorCount;
}

std::vector<OperandType> types_of(const std::vector<DeviceTensor>& tensors) {
  std::vector<OperandType> types;
  for (const DeviceTensor& tensor : tensors) types.push_back({tensor.shape, tensor.dtype});
  return types;
}

/// Runs on the tensors, by the algorithms that a trial chose.
void run_prepared(OpKind kind, const OpAttributes& attributes, const std::vector<DeviceTensor>& tensors) {
  const DeviceOperation& operation = device_operation(kind);
  const std::vector<OperandType> types = types_of(tensors);
  OwnedQueue queue(multiprocessors(), operation.scratch == nullptr ? 0 : operation.scratch(types, attributes));
  if (operation.prepare != nullptr) operation.prepare(queue.get(), types, attributes);
  if (operation.scratch != nullptr) queue.reserve(operation.scratch(types, attributes));
  operation.kernel(queue.get(), tensors, attributes);
  check(cudaStreamSynchronize(queue.get().stream), "the kernel");
}

/// c = a b^T, of which 1,000 elements at random places are computed on the host. Each is a sum of k products of numbers of
/// variance 1 / k, so of some 1 / sqrt(k); it is rounded once, by 2^-9 of itself, and summed up in fp32. Of fp8, Hopper's tensor
/// cores keep some 14 bits of a few products' sum before that (DeepSeek-V3's report, arXiv 2412.19437, section 3.3.2): a
/// hundredth of an element at most.
void expect_samples(std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k) + " in " + std::string(name_of(type)));
  const Tensor a({Shape(m, k), type}, "a"), b({Shape(n, k), type}, "b"), c({Shape(m, n), DType::bf16}, "c");
  OwnedQueue queue(multiprocessors(), 0);
  a.fill(queue.get());
  b.fill(queue.get());
  run_prepared(OpKind::gemm, GemmAttributes{.transpose_a = false, .transpose_b = true}, {a.on_gpu(), b.on_gpu(), c.on_gpu()});
  const double beside = type == DType::f8 ? 0x1p-13 : 0x1p-18;
  for (std::uint64_t sample = 0; sample < 1000; ++sample) {
    // Corners first, where a tile may be cut.
    const auto drawn = [&](std::int64_t size, std::uint64_t salt) {
      if (sample < 4) return (sample >> salt & 1U) != 0 ? size - 1 : 0;
      return static_cast<std::int64_t>(hash(2 * sample + salt) % static_cast<std::uint64_t>(size));
    };
    const std::int64_t row = drawn(m, 0), column = drawn(n, 1);
    double sum = 0, magnitude = 0;
    for (std::int64_t i = 0; i < k; ++i) {
      const double product = double{a.number(row, i)} * b.number(column, i);
      sum += product;
      magnitude += std::abs(product);
    }
    ASSERT_NEAR(c.read(row * n + column), sum, 0x1p-8 * std::abs(sum) + beside * magnitude) << row << ", " << column;
  }
}

/// Fails where, while it lives, a library is said to have refused what was to be tried (see say_once.h), so that something else
/// was.
class NobodySays {
 public:
  explicit NobodySays(const char* refusal) : refusal_(refusal) { testing::internal::CaptureStderr(); }
  NobodySays(const NobodySays&) = delete;
  ~NobodySays() {
    const std::string said = testing::internal::GetCapturedStderr();
    std::cerr << said;
    EXPECT_EQ(said.find(refusal_), std::string::npos);
  }

 private:
  const char* refusal_;
};

TEST_F(GpuLarge, ProductOfTheVocabularyIsTheHosts) { expect_samples(8192, 128256, 4096, DType::bf16); }

TEST_F(GpuLarge, ProductsOfAutotunedAlgorithmsAreTheHosts) {
  const NobodySays nobody_says("in fp8, which is multiplied in bf16");
  for (const DType type : {DType::bf16, DType::f8}) {
    if (type == DType::f8 && !CublasLt::of_this_device().multiplies_fp8()) continue;
    expect_samples(8192, 28672, 4096, type);
    expect_samples(8192, 4096, 14336, type);
    expect_samples(4096, 6144, 4096, type);
  }
}

// 32 heads of 128 on 8 key heads, as in Llama 3 8B. Queries and keys have a variance of 1 / 128: scores of variance 1 want so
// large a scale.
TEST_F(GpuLarge, OwnAttentionIsCudnns) {
  if (!cudnn_version()) GTEST_SKIP() << "no cuDNN";
  constexpr std::int64_t tokens = 4096, heads = 32, kv_heads = 8, width = 128;
  const Positions all{.start = {0, 0}, .length = {tokens, 0}};
  const AttentionAttributes attributes{.causal = true, .scale = std::sqrt(float{width}), .queries = all, .keys = all};
  const Shape of_queries(tokens, 1, heads, width), of_keys(tokens, 1, kv_heads, width), of_lse(1, heads, tokens, 1);
  const auto bf16 = [](const Shape& shape, const char* name) { return Tensor({shape, DType::bf16}, name); };
  const Tensor q = bf16(of_queries, "q"), k = bf16(of_keys, "k"), v = bf16(of_keys, "v"), dout = bf16(of_queries, "dout");
  OwnedQueue queue(multiprocessors(), 0);
  for (const Tensor* tensor : {&q, &k, &v, &dout}) tensor->fill(queue.get());

  const auto run = [&] {
    const Tensor out = bf16(of_queries, "out"), dq = bf16(of_queries, "dq"), dk = bf16(of_keys, "dk"), dv = bf16(of_keys, "dv");
    const Tensor lse({of_lse, DType::f32}, "lse");
    run_prepared(OpKind::attention, attributes, {q.on_gpu(), k.on_gpu(), v.on_gpu(), out.on_gpu(), lse.on_gpu()});
    run_prepared(
        OpKind::attention_backward, attributes,
        {q.on_gpu(), k.on_gpu(), v.on_gpu(), out.on_gpu(), lse.on_gpu(), dout.on_gpu(), dq.on_gpu(), dk.on_gpu(), dv.on_gpu()});
    return std::vector{out.read_all(), lse.read_all(), dq.read_all(), dk.read_all(), dv.read_all()};
  };
  const std::vector<std::vector<float>> by_cudnn = [&] {
    const NobodySays nobody_says("does not run");
    return run();
  }();
  const WithoutLibraries own;
  const std::vector<std::vector<float>> by_us = run();
  constexpr const char* names[] = {"out", "lse", "dq", "dk", "dv"};
  for (std::size_t t = 0; t < by_us.size(); ++t) {
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < by_us[t].size(); ++i) {
      ASSERT_TRUE(std::isfinite(by_us[t][i]) && std::isfinite(by_cudnn[t][i])) << names[t] << " " << i;
      largest = std::max<double>(largest, std::abs(by_cudnn[t][i]));
      apart = std::max<double>(apart, std::abs(by_cudnn[t][i] - by_us[t][i]));
    }
    EXPECT_LT(apart, 4 * 0x1p-8 * largest) << names[t] << ": a few roundings to bf16 of the largest";
  }
}

}  // namespace
}  // namespace tandem::studies::gpu_large_kernels_test
