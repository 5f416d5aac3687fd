#pragma once

#include <stdexcept>

#include "runtime/cuda/module/kernel.h"

namespace tandem {

/// Returns the bytes that a piece of scratch takes: pieces begin at multiples of 256 bytes.
constexpr std::size_t scratch_piece(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// Cuts a queue's scratch into pieces, one after the other.
class Scratch {
 public:
  explicit Scratch(const Queue& queue) : next_(static_cast<std::byte*>(queue.scratch)), left_(queue.scratch_bytes) {}

  /// Throws std::logic_error when the operation's scratch function asked for too little.
  void* take(std::size_t bytes) {
    const std::size_t piece = scratch_piece(bytes);
    if (piece > left_) throw std::logic_error("a kernel needs more scratch than was asked for");
    void* const taken = next_;
    next_ += piece;
    left_ -= piece;
    return taken;
  }

 private:
  std::byte* next_;
  std::size_t left_;
};

}  // namespace tandem
