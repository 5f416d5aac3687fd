// cuDNN recognises a fused attention by the operations of its graph, one for one: whether it does, and has a kernel for it, can
// be seen without a GPU, as it compiles for one that is described.

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "runtime/cuda/module/cudnn_attention_graph.h"

namespace tandem::cudnn_attention_test {
namespace {

/// The library of the machine, with the driver that does nothing.
const CudnnLibrary& cudnn() {
  static const CudnnLibrary* const opened = [] {
    if (::dlopen(TANDEM_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL) == nullptr) throw std::runtime_error(::dlerror());
    return new CudnnLibrary(TANDEM_CUDNN);
  }();
  return *opened;
}

/// A GPU's properties as cuDNN writes them.
CudnnDescriptor described_gpu(int compute_capability) {
  std::ostringstream text;
  text << std::ifstream(TANDEM_SOURCE_DIR "/tests/cudnn/h200.json").rdbuf();
  std::string properties = text.str();
  const std::string of_h200 = "\"deviceVer\": 900";
  properties.replace(properties.find(of_h200), of_h200.size(), "\"deviceVer\": " + std::to_string(compute_capability));
  CudnnDescriptor descriptor(cudnn(), CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, static_cast<std::int64_t>(properties.size()),
                 properties.data());
  descriptor.finalize();
  return descriptor;
}

constexpr int h200 = 900, a100 = 800;

CudnnPlan compile(const FusedAttention& attention, AttentionDirection direction, int compute_capability = h200) {
  const CudnnDescriptor gpu = described_gpu(compute_capability);
  return cudnn_attention_graph(cudnn(), attention, direction).graph.compile({.handle = nullptr, .properties = gpu.get()});
}

constexpr FusedAttention llama{.micro_batch = 1,
                               .heads = 32,
                               .kv_heads = 8,
                               .queries = 4096,
                               .keys = 4096,
                               .head_dim = 128,
                               .value_dim = 128,
                               .causal = true};

struct Case {
  const char* name;
  FusedAttention attention;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

template <typename Change>
FusedAttention like_llama(const Change& change) {
  FusedAttention attention = llama;
  change(attention);
  return attention;
}

class Recognised : public testing::TestWithParam<Case> {};

INSTANTIATE_TEST_SUITE_P(CudnnAttention, Recognised,
                         testing::Values(Case{"grouped_queries", llama},  //
                                         Case{"as_many_key_heads", like_llama([](FusedAttention& a) { a.kv_heads = 32; })},
                                         Case{"one_key_head", like_llama([](FusedAttention& a) { a.kv_heads = 1; })},
                                         Case{"all_keys_seen", like_llama([](FusedAttention& a) { a.causal = false; })},
                                         Case{"more_keys_than_queries", like_llama([](FusedAttention& a) {
                                                a.causal = false;
                                                a.keys = 8192;
                                              })},
                                         Case{"fp16", like_llama([](FusedAttention& a) { a.type = DType::f16; })},
                                         Case{"narrow_heads",
                                              like_llama([](FusedAttention& a) { a.head_dim = a.value_dim = 64; })},
                                         Case{"micro_batch_of_four", like_llama([](FusedAttention& a) { a.micro_batch = 4; })},
                                         Case{"odd_length", like_llama([](FusedAttention& a) { a.queries = a.keys = 1000; })}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Recognised, OnAnH200) {
  EXPECT_NO_THROW(compile(GetParam().attention, AttentionDirection::forward));
  EXPECT_NO_THROW(compile(GetParam().attention, AttentionDirection::backward));
}

TEST(CudnnAttentionGraph, IsRecognisedOnAnA100) {
  EXPECT_NO_THROW(compile(llama, AttentionDirection::forward, a100));
  EXPECT_NO_THROW(compile(llama, AttentionDirection::backward, a100));
}

// The kernel keeps nothing as large as the scores; of grouped queries, it keeps dk and dv of all query heads.
TEST(CudnnAttentionGraph, NeedsLittleMemory) {
  EXPECT_LT(compile(llama, AttentionDirection::forward).workspace_bytes(), 1024U);
  const std::size_t of_all_heads = 2 * 2 * 32 * 4096 * 128;
  const std::size_t backward = compile(llama, AttentionDirection::backward).workspace_bytes();
  EXPECT_GE(backward, of_all_heads);
  EXPECT_LT(backward, of_all_heads + 65536);
}

// Operands stand in the operation's order, and what is not among them is told apart.
TEST(CudnnAttentionGraph, BindsEveryTensorOnce) {
  for (const AttentionDirection direction : {AttentionDirection::forward, AttentionDirection::backward}) {
    const CudnnAttentionGraph graph = cudnn_attention_graph(cudnn(), llama, direction);
    std::vector<std::int64_t> numbers{graph.scale.number};
    for (const CudnnTensor& tensor : graph.operands) numbers.push_back(tensor.number);
    for (const CudnnTensor& tensor : graph.scratch) numbers.push_back(tensor.number);
    for (const auto& [tensor, value] : graph.constants) numbers.push_back(tensor.number);
    std::ranges::sort(numbers);
    EXPECT_EQ(std::ranges::adjacent_find(numbers), numbers.end());
    EXPECT_EQ(graph.operands.size(), direction == AttentionDirection::forward ? 5U : 9U);
  }
}

// In other words the same, and no engine knows it: what the tests above hold is not that anything goes.
TEST(CudnnAttentionGraph, IsRefusedWithoutTheSoftmaxOfTheRow) {
  CudnnGraph graph(cudnn());
  const CudnnGraph::Dimensions size{1, 32, 4096, 128}, scores{1, 32, 4096, 4096};
  const CudnnTensor q = graph.in_memory(CUDNN_DATA_BFLOAT16, size, CudnnGraph::dense(size));
  const CudnnTensor k = graph.in_memory(CUDNN_DATA_BFLOAT16, {1, 32, 128, 4096}, {32 * 4096 * 128, 4096 * 128, 1, 128});
  const CudnnTensor out = graph.in_memory(CUDNN_DATA_BFLOAT16, size, CudnnGraph::dense(size));
  const CudnnTensor products = graph.inside(scores), cosines = graph.inside(scores, CUDNN_DATA_BFLOAT16);
  graph.matmul(q, k, products);
  graph.pointwise(CUDNN_POINTWISE_COS, products, cosines);
  graph.matmul(cosines, q, out);
  const CudnnDescriptor gpu = described_gpu(h200);
  EXPECT_THROW(graph.compile({.handle = nullptr, .properties = gpu.get()}), std::runtime_error);
}

TEST(CudnnLibraryFile, ThatIsNoneIsRefused) {
  EXPECT_THAT([] { CudnnLibrary("/nowhere/libcudnn.so.9"); },
              testing::ThrowsMessage<std::runtime_error>(testing::StartsWith("cuDNN cannot be opened: /nowhere/libcudnn.so.9")));
  EXPECT_THAT([] { CudnnLibrary(TANDEM_FAKE_DRIVER); },
              testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr("is no cuDNN 9: it has no cudnn")));
}

TEST(CudnnLibraryFile, WithKnownErrorsIsRefused) {
  for (const char* version : {"90600", "91000", "91001", "91500"}) {
    ::setenv("FAKE_CUDNN_VERSION", version, 1);
    EXPECT_THAT([] { CudnnLibrary{TANDEM_FAKE_CUDNN}; },
                testing::ThrowsMessage<std::runtime_error>(testing::HasSubstr(", expected 9.15.1 or later")));
  }
  for (const char* version : {"91501", "91900"}) {
    ::setenv("FAKE_CUDNN_VERSION", version, 1);
    EXPECT_NO_THROW(CudnnLibrary{TANDEM_FAKE_CUDNN});
  }
  ::unsetenv("FAKE_CUDNN_VERSION");
}

TEST(CudnnLibraryFile, CanBeSwitchedOff) {
  ::setenv("TANDEM_CUDNN_LIBRARY", "none", 1);
  EXPECT_EQ(CudnnLibrary::open(), nullptr);
  ::setenv("TANDEM_CUDNN_LIBRARY", TANDEM_CUDNN, 1);
  ASSERT_NE(CudnnLibrary::open(), nullptr);
  EXPECT_THAT(CudnnLibrary::open()->version_text(), testing::MatchesRegex("9\\.[0-9]+\\.[0-9]+"));
  ::unsetenv("TANDEM_CUDNN_LIBRARY");
}

}  // namespace
}  // namespace tandem::cudnn_attention_test
