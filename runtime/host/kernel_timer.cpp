#include "runtime/host/kernel_timer.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "runtime/base/stopwatch.h"
#include "runtime/timed_operands.h"

namespace tandem {
namespace {

/// Positive numbers near 1: sums, maxima and logarithms of them are ordinary, and none is denormal, which a CPU is slow at.
const std::vector<float>& ordinary_numbers() {
  static const std::vector<float> numbers = [] {
    std::vector<float> values(1 << 16);
    std::uint32_t state = 1;
    for (float& value : values) {
      state = state * 1664525 + 1013904223;
      value = 0.25F + static_cast<float>(state >> 8) * 0x1p-25F;
    }
    return values;
  }();
  return numbers;
}

void fill(float* data, std::int64_t elements) {
  const std::vector<float>& numbers = ordinary_numbers();
  for (std::int64_t done = 0; done < elements; done += std::ssize(numbers))
    std::memcpy(data + done, numbers.data(),
                static_cast<std::size_t>(std::min(elements - done, std::ssize(numbers))) * sizeof(float));
}

class HostKernelTimer final : public KernelTimer {
 public:
  explicit HostKernelTimer(Bytes memory) : memory_(memory) {}

  Timing time(const TimedKernel& kernel, Seconds budget) override {
    HostKernel* const run = operation(kernel.op).host;
    if (run == nullptr) throw std::runtime_error("no host kernel for " + std::string(operation(kernel.op).name));
    const std::vector<std::vector<HostTensor>> sets = operand_sets(kernel);
    run(sets.back(), kernel.attributes);  // warm: code, tables of the BLAS, and its buffers

    constexpr std::size_t most = 2000;
    constexpr std::size_t far_apart = 10'007;  // a prime: every set has its turn, and few are where the CPU has read ahead
    std::vector<Seconds> samples;
    const Stopwatch stopwatch;
    while (samples.size() < fewest || (samples.size() < most && stopwatch.elapsed() < budget)) {
      const Stopwatch of_one;
      run(sets[samples.size() * far_apart % sets.size()], kernel.attributes);
      samples.push_back(std::max(of_one.elapsed(), shortest));
    }
    return timing_of(std::move(samples));
  }
  int fewest_runs(const TimedKernel&) const override { return 1 + static_cast<int>(fewest); }

 private:
  static constexpr std::size_t fewest = 5;   ///< samples
  static constexpr Seconds shortest = 1e-9;  ///< what the clock can tell apart
  Bytes memory_;
  std::vector<float> arena_;

  std::vector<std::vector<HostTensor>> operand_sets(const TimedKernel& kernel) {
    constexpr std::int64_t alignment = 64 / sizeof(float);  // of a cache line
    constexpr Bytes beyond_caches = 128'000'000;
    std::int64_t of_one = 0;
    for (const OperandType& operand : kernel.operands) of_one += (operand.shape.elements() + alignment) / alignment * alignment;
    of_one = std::max(of_one, alignment);
    const Bytes bytes = of_one * static_cast<Bytes>(sizeof(float));
    if (bytes > memory_) {
      throw std::runtime_error("its operands take " + std::to_string(bytes / 1'000'000) + " MB, more than the " +
                               std::to_string(memory_ / 1'000'000) + " MB allowed");
    }
    const std::int64_t sets = std::clamp<std::int64_t>(beyond_caches / bytes, 1, 256);
    if (std::ssize(arena_) < sets * of_one) arena_.resize(static_cast<std::size_t>(sets * of_one));
    fill(arena_.data(), sets * of_one);

    const std::vector<std::vector<std::int32_t>> integers = integer_contents(kernel);
    std::vector<std::vector<HostTensor>> found(static_cast<std::size_t>(sets));
    float* next = arena_.data();
    for (std::vector<HostTensor>& set : found) {
      for (std::size_t i = 0; i < kernel.operands.size(); ++i) {
        set.push_back({next, kernel.operands[i].shape});
        std::copy(integers[i].begin(), integers[i].end(), set.back().i32());
        next += (set.back().shape.elements() + alignment) / alignment * alignment;
      }
    }
    return found;
  }
};

}  // namespace

std::unique_ptr<KernelTimer> make_host_kernel_timer(Bytes memory) { return std::make_unique<HostKernelTimer>(memory); }

}  // namespace tandem
