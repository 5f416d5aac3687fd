#include "traces/annotations.h"

#include <charconv>

#include "runtime/base/si.h"

namespace tandem::traces {
namespace {

constexpr double tera = 1e12;

/// "bf16[8192,1,16384]"
void append_type(std::string& out, const Buffer& buffer) {
  out += name_of(buffer.dtype);
  out += '[';
  for (std::size_t i = 0; i < buffer.shape.rank; ++i) {
    if (i > 0) out += ',';
    std::array<char, 20> digits;
    const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), buffer.shape[i]);
    out.append(digits.data(), end);
  }
  out += ']';
}

}  // namespace

std::span<const Annotation> Annotator::of(TaskId id) {
  const Task& task = source_.dag->tasks[id];
  annotations_.clear();
  add_labels(task);
  add_operands(id);
  if (is_communication(task.op)) {
    add_communication(id);
  } else {
    add_kernel_work(id);
  }
  if (source_.bound) annotations_.push_back({AnnotationKey::bound, source_.bound(id)});
  return annotations_;
}

void Annotator::add_labels(const Task& task) {
  annotations_.push_back({AnnotationKey::op, operation(task.op).name});
  annotations_.push_back({AnnotationKey::phase, name_of(task.phase)});
  if (task.layer >= 0) annotations_.push_back({AnnotationKey::layer, std::int64_t{task.layer}});
  if (task.micro_batch >= 0) annotations_.push_back({AnnotationKey::micro_batch, std::int64_t{task.micro_batch}});
  if (task.chunk >= 0) annotations_.push_back({AnnotationKey::chunk, std::int64_t{task.chunk}});
}

/// "bf16[2,4] bf16[4,8] -> bf16[2,8]": what is read, then what is written or updated.
void Annotator::add_operands(TaskId id) {
  operands_.clear();
  bool writes = false;
  for (const Operand& operand : source_.dag->operands_of(id)) {
    if (!operands_.empty()) operands_ += ' ';
    if (!writes && operand.access() != Access::read) {
      writes = true;
      operands_ += "-> ";
    }
    append_type(operands_, source_.dag->buffers[operand.buffer]);
  }
  if (!operands_.empty()) annotations_.push_back({AnnotationKey::operands, std::string_view(operands_)});
}

void Annotator::add_kernel_work(TaskId id) {
  const OpCost cost = cost_of(*source_.dag, id);
  const Seconds time = source_.timeline->duration(id);
  annotations_.push_back({AnnotationKey::bytes, std::int64_t{cost.bytes}});
  if (cost.flops > 0) annotations_.push_back({AnnotationKey::flops, cost.flops});
  if (time <= 0) return;
  if (cost.flops > 0) annotations_.push_back({AnnotationKey::tflops_per_second, cost.flops / time / tera});
  annotations_.push_back({AnnotationKey::gigabytes_per_second, static_cast<double>(cost.bytes) / time / giga});
}

void Annotator::add_communication(TaskId id) {
  const Task& task = source_.dag->tasks[id];
  const Group& group = source_.dag->groups[task.group];
  const Communicator& communicator = source_.dag->communicators[group.communicator];
  const Seconds time = source_.timeline->duration(id);
  annotations_.push_back({AnnotationKey::bytes, std::int64_t{group.bytes}});
  if (time > 0) {
    annotations_.push_back({AnnotationKey::gigabytes_per_second, static_cast<double>(group.bytes) / time / giga});
  }
  annotations_.push_back({AnnotationKey::communicator, std::string_view(communicator.name)});
  annotations_.push_back({AnnotationKey::communicator_size, static_cast<std::int64_t>(communicator.members.size())});
}

}  // namespace tandem::traces
