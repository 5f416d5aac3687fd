#pragma once

#include <csetjmp>
#include <cstddef>
#include <functional>
#include <memory>

namespace tandem::emulation {

/// A function with a stack of its own, which runs in turns with the one that resumes it.
///
/// Only a stack's first use goes through ucontext, which takes system calls. From then on the two jump, and a body that follows
/// one that ended begins where that one ended.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets what the next resume() begins; what has not ended is abandoned where it stands. `body` outlives its run and does not
  /// throw.
  void start(const std::function<void()>& body);
  /// Runs until the body suspends or ends.
  void resume();
  /// Called by the body; goes back to resume().
  void suspend();

 private:
  static void enter(unsigned high, unsigned low);
  [[noreturn]] void begin();

  static constexpr std::size_t stack_bytes = 256 << 10;
  std::unique_ptr<std::byte[]> stack_;
  jmp_buf own_, resumer_;
  const std::function<void()>* body_ = nullptr;
  bool has_ended_ = false;  ///< a body, which another can follow on the stack
  bool is_new_ = true;      ///< the stack is to be entered from its start
  // of AddressSanitizer, which must be told of a change of stacks
  void *own_fake_stack_ = nullptr, *resumer_fake_stack_ = nullptr;
  const void* resumer_stack_ = nullptr;
  std::size_t resumer_stack_bytes_ = 0;
};

}  // namespace tandem::emulation
