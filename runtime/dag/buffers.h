#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <vector>

#include "runtime/base/dtype.h"
#include "runtime/base/numbered.h"
#include "runtime/base/units.h"
#include "runtime/dag/ids.h"

namespace tandem {

/// What a buffer's bytes count as in the memory report.
enum class BufferKind : std::uint8_t {
  parameter,
  gradient,
  optimizer,
  activation,
  communication,
  input,
  host  ///< in the host's memory, and none of the GPU's
};
std::string_view name_of(BufferKind kind);

/// Parameters, gradients, optimizer states, inputs and what the host holds live for the whole step; activations and communication
/// buffers from the first task that touches them to the last.
constexpr bool is_persistent(BufferKind kind) { return kind != BufferKind::activation && kind != BufferKind::communication; }

/// A buffer, or a view into one: `elements()` consecutive elements of `base` from `offset` on. `base` is the buffer's own id
/// when it is no view; a view's base is never itself a view.
struct Buffer {
  Shape shape;
  DType dtype = DType::f32;
  Scaling scaling = Scaling::none;
  BufferKind kind = BufferKind::activation;
  RankIndex rank = 0;
  BufferId base = 0;
  std::int64_t offset = 0;

  Bytes bytes() const { return size_of(dtype, shape.elements()) + scale_bytes(scaling, shape.elements()); }
  bool operator==(const Buffer&) const = default;
};

/// The buffers of a DAG, by id. There are millions in a step, and thousands that differ: one micro-batch has those of the one
/// before it, as many ids later. So each id holds the number of a buffer among those that differ, and a buffer comes by value.
class Buffers {
 public:
  using value_type = Buffer;
  class Iterator;

  std::size_t size() const { return numbers_.size(); }
  Buffer operator[](BufferId id) const {
    const Distinct& distinct = distinct_[numbers_[id]];
    Buffer buffer = distinct.buffer;
    if (distinct.is_counted_back) buffer.base = id - buffer.base;
    return buffer;
  }
  Iterator begin() const;
  Iterator end() const;

  void push_back(const Buffer& buffer) { numbers_.push_back(number_of(buffer, static_cast<BufferId>(size()))); }
  /// Adds one that differs from an earlier one in its base alone.
  void push_like(BufferId earlier, BufferId base);
  void set(BufferId id, const Buffer& buffer) { numbers_[id] = number_of(buffer, id); }
  /// Appends others, whose bases are ids among themselves.
  void append(const Buffers& others);
  /// Appends others as this rank's, the first of which are `own`.
  void append_as(const Buffers& others, RankIndex rank, const Buffers& own);
  /// Makes room for so many in all.
  void reserve(std::size_t count);
  std::size_t capacity() const { return numbers_.capacity(); }
  void clear();

 private:
  /// A buffer whose base is given by its id, or by how many ids it lies before the buffer's own.
  struct Distinct {
    Buffer buffer;
    bool is_counted_back = true;

    bool operator==(const Distinct&) const = default;
  };
  struct Hash {
    std::uint64_t operator()(const Distinct& distinct) const;
  };

  std::vector<std::uint32_t> numbers_;  ///< by id
  Numbered<Distinct, Hash> distinct_;

  std::uint32_t number_of(const Buffer& buffer, BufferId id);
  /// Appends those of `others` from this place on, whose ids are `first` higher here, as they are or as a rank's.
  void append_from(std::size_t place, const Buffers& others, BufferId first, RankIndex rank = no_id);
};

class Buffers::Iterator {
 public:
  using value_type = Buffer;
  using difference_type = std::ptrdiff_t;

  Iterator() = default;
  Iterator(const Buffers& buffers, BufferId id) : buffers_(&buffers), id_(id) {}
  Buffer operator*() const { return (*buffers_)[id_]; }
  Iterator& operator++() {
    ++id_;
    return *this;
  }
  Iterator operator++(int) {
    const Iterator before = *this;
    ++id_;
    return before;
  }
  bool operator==(const Iterator&) const = default;

 private:
  const Buffers* buffers_ = nullptr;
  BufferId id_ = 0;
};

inline Buffers::Iterator Buffers::begin() const { return {*this, 0}; }
inline Buffers::Iterator Buffers::end() const { return {*this, static_cast<BufferId>(size())}; }

}  // namespace tandem
