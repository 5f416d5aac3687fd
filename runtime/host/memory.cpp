#include "runtime/host/memory.h"

#include <algorithm>
#include <limits>

#include "runtime/contents/initial_contents.h"

namespace tandem {
namespace {

constexpr float unset = std::numeric_limits<float>::quiet_NaN();

class HostWriter final : public ContentsWriter {
 public:
  explicit HostWriter(const HostMemory& memory) : memory_(memory) {}

  void write(const Stretch& out, float value) override { std::fill_n(at(out).f32(), out.count, value); }
  void write(const Stretch& out, const ShardValues& values) override {
    float* element = at(out).f32();
    for (std::int64_t i = 0; i < out.count; ++i) *element++ = values.at(i);
  }
  void write(const Stretch& out, const InputValues& values) override {
    std::int32_t* element = at(out).i32();
    for (std::int64_t i = 0; i < out.count; ++i) *element++ = values.at(i);
  }
  void copy(const Stretch& from, const Stretch& to) override { std::copy_n(at(from).f32(), from.count, at(to).f32()); }

 private:
  const HostMemory& memory_;
  HostTensor at(const Stretch& stretch) const {
    return {memory_.tensor(stretch.base).f32() + stretch.begin, Shape(stretch.count)};
  }
};

}  // namespace

HostMemory::HostMemory(const Dag& dag, std::uint64_t seed) : HostMemory(dag, [](const Buffer&) { return true; }) {
  HostWriter writer(*this);
  write_initial_contents(dag, seed, writer);
}

HostMemory::HostMemory(const Dag& dag, const std::function<bool(const Buffer&)>& wanted)
    : dag_(&dag), storage_(dag.buffers.size()) {
  for (BufferId id = 0; id < dag.buffers.size(); ++id) {
    const Buffer& buffer = dag.buffers[id];
    if (buffer.base != id || !wanted(buffer)) continue;
    storage_[id] = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(buffer.shape.elements()));
    std::fill_n(storage_[id].get(), buffer.shape.elements(), unset);
  }
}

HostTensor HostMemory::tensor(BufferId id) const {
  const Buffer& buffer = dag_->buffers[id];
  return {storage_[buffer.base].get() + buffer.offset, buffer.shape};
}

}  // namespace tandem
