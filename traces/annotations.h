#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traces/trace.h"

namespace tandem::traces {

/// The keys of what a span says about its task beyond its name. Rates are over the task's duration; that of a collective is
/// nccl-tests' "algorithm bandwidth" (the full vector over the time). `bound` is what `TraceSource::bound` says.
enum class AnnotationKey : std::uint8_t {
  op,
  phase,
  layer,
  micro_batch,
  chunk,
  operands,
  bytes,
  flops,
  tflops_per_second,
  gigabytes_per_second,
  bound,
  communicator,
  communicator_size,
};
inline constexpr std::array<std::string_view, 13> annotation_names{
    "op",    "phase",   "layer", "micro_batch", "chunk",        "operands",         "bytes",
    "flops", "TFLOP/s", "GB/s",  "bound",       "communicator", "communicator_size"};

constexpr std::string_view name_of(AnnotationKey key) { return annotation_names[static_cast<std::size_t>(key)]; }

struct Annotation {
  AnnotationKey key = AnnotationKey::op;
  std::variant<std::int64_t, double, std::string_view> value;
};

/// Annotates one task after the other without allocating: what `of` returns is valid until it is called again.
class Annotator {
 public:
  explicit Annotator(const TraceSource& source) : source_(source) {}
  std::span<const Annotation> of(TaskId id);

 private:
  const TraceSource& source_;
  std::vector<Annotation> annotations_;
  std::string operands_;

  void add_labels(const Task& task);
  void add_operands(TaskId id);
  void add_kernel_work(TaskId id);
  void add_communication(TaskId id);
};

}  // namespace tandem::traces
