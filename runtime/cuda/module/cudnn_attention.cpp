#include "runtime/cuda/module/cudnn_attention.h"

#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "runtime/cuda/module/check.h"
#include "runtime/cuda/module/cudnn_attention_graph.h"
#include "runtime/cuda/module/say_once.h"
#include "runtime/cuda/module/scratch.h"

namespace tandem {
namespace {

std::string text_of(const FusedAttention& attention, AttentionDirection direction) {
  return std::string(direction == AttentionDirection::forward ? "attention" : "attention's backward") + " of " +
         std::to_string(attention.queries) + " queries and " + std::to_string(attention.keys) + " keys, " +
         std::to_string(attention.heads) + " heads of " + std::to_string(attention.head_dim) + ", in " +
         std::string(name_of(attention.type));
}

/// cuDNN on one device. A handle has one stream at a time: whoever runs something holds `mutex`.
struct Handle {
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
};

/// Returns cuDNN, which is opened once; null where there is none.
const CudnnLibrary* library() {
  static const std::unique_ptr<const CudnnLibrary> opened = CudnnLibrary::open();
  return opened.get();
}

class Compiled final : public CudnnAttention {
 public:
  Compiled(const CudnnLibrary& cudnn, Handle& handle, const FusedAttention& attention, AttentionDirection direction)
      : cudnn_(cudnn),
        handle_(handle),
        graph_(cudnn_attention_graph(cudnn, attention, direction)),
        plan_(graph_.graph.compile({.handle = handle.handle})) {}

  std::size_t scratch_bytes() const override {
    std::size_t bytes = scratch_piece(plan_.workspace_bytes());
    for (const CudnnTensor& tensor : graph_.scratch) bytes += scratch_piece(bytes_of(tensor));
    return bytes;
  }

  void run(const Queue& queue, std::span<const DeviceTensor> operands, float scale) const override {
    Scratch scratch(queue);
    CudnnBindings bindings;
    for (std::size_t i = 0; i < operands.size(); ++i) bindings.emplace(graph_.operands[i].number, operands[i].data);
    for (const CudnnTensor& tensor : graph_.scratch) bindings.emplace(tensor.number, scratch.take(bytes_of(tensor)));
    bindings.emplace(graph_.scale.number, &scale);
    std::vector<float> constants;
    constants.reserve(graph_.constants.size());
    for (const auto& [tensor, value] : graph_.constants) bindings.emplace(tensor.number, &constants.emplace_back(value));

    const std::scoped_lock lock(handle_.mutex);
    cudnn_.check(cudnn_.cudnnSetStream(handle_.handle, queue.stream), "cudnnSetStream");
    plan_.run(handle_.handle, bindings, scratch.take(plan_.workspace_bytes()));
  }

 private:
  const CudnnLibrary& cudnn_;
  Handle& handle_;
  CudnnAttentionGraph graph_;
  CudnnPlan plan_;

  static std::size_t bytes_of(const CudnnTensor& tensor) {
    std::int64_t elements = 1;
    for (const std::int64_t size : tensor.size) elements *= size;
    return static_cast<std::size_t>(elements) * sizeof(float);
  }
};

/// The attentions that were compiled for one device; null where cuDNN has no kernel.
class Device {
 public:
  explicit Device(const CudnnLibrary& cudnn) : cudnn_(cudnn) {
    try {
      cudnn.check(cudnn.cudnnCreate(&handle_.handle), "cudnnCreate");
    } catch (const std::runtime_error& error) {
      is_usable_ = false;
      say_once("cuDNN " + cudnn.version_text() +
               " cannot use this GPU, so attention runs by Tandem's own kernels: " + error.what());
    }
  }

  /// Returns false where this cuDNN does not know the GPU, or wants a later driver.
  bool is_usable() const { return is_usable_; }

  const CudnnAttention* find(const FusedAttention& attention, AttentionDirection direction) {
    if (!is_usable_) return nullptr;
    const std::scoped_lock lock(mutex_);
    const auto [place, is_new] = compiled_.try_emplace({attention, direction});
    if (is_new) {
      try {
        place->second = std::make_unique<Compiled>(cudnn_, handle_, attention, direction);
      } catch (const std::runtime_error& error) {
        // That it has no kernel cuDNN says only by refusing the graph.
        say_once("cuDNN " + cudnn_.version_text() + " does not run " + text_of(attention, direction) +
                 ", which Tandem's own kernel does: " + error.what());
      }
    }
    return place->second.get();
  }

 private:
  const CudnnLibrary& cudnn_;
  std::mutex mutex_;
  Handle handle_;
  bool is_usable_ = true;
  std::map<std::pair<FusedAttention, AttentionDirection>, std::unique_ptr<CudnnAttention>> compiled_;
};

/// Never destroyed: CUDA may be gone when a process ends.
Device& this_device(const CudnnLibrary& cudnn) {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, std::unique_ptr<Device>>;
  int number = 0;
  check(cudaGetDevice(&number), "cudaGetDevice");
  const std::scoped_lock lock(mutex);
  std::unique_ptr<Device>& device = devices[number];
  if (device == nullptr) device = std::make_unique<Device>(cudnn);
  return *device;
}

}  // namespace

const CudnnAttention* cudnn_attention(const FusedAttention& attention, AttentionDirection direction) {
  const CudnnLibrary* const cudnn = library();
  return cudnn == nullptr ? nullptr : this_device(*cudnn).find(attention, direction);
}

std::optional<std::string> cudnn_version() {
  const CudnnLibrary* const cudnn = library();
  if (cudnn == nullptr || !this_device(*cudnn).is_usable()) return std::nullopt;
  return cudnn->version_text();
}

}  // namespace tandem
