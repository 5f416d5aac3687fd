#include "runtime/cuda/emulation/fiber.h"

#include <ucontext.h>

#include <bit>
#include <cstdint>
#include <cstdlib>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace tandem::emulation {
namespace {

#ifdef __SANITIZE_ADDRESS__
void leave_stack(void** fake_stack, const void* to, std::size_t bytes) { __sanitizer_start_switch_fiber(fake_stack, to, bytes); }
void enter_stack(void* fake_stack, const void** from, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake_stack, from, bytes);
}
void forget_stack(void* stack, std::size_t bytes) { ASAN_UNPOISON_MEMORY_REGION(stack, bytes); }
#else
void leave_stack(void**, const void*, std::size_t) {}
void enter_stack(void*, const void**, std::size_t*) {}
void forget_stack(void*, std::size_t) {}
#endif

}  // namespace

Fiber::Fiber() : stack_(std::make_unique_for_overwrite<std::byte[]>(stack_bytes)) {}

void Fiber::start(const std::function<void()>& body) {
  body_ = &body;
  if (has_ended_) {
    has_ended_ = false;
    return;
  }
  is_new_ = true;
  own_fake_stack_ = nullptr;
  forget_stack(stack_.get(), stack_bytes);
}

/// Is left and never returned from, so its frame would stay poisoned.
[[gnu::no_sanitize_address]] void Fiber::begin() {
  is_new_ = false;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_.get();
  context.uc_stack.ss_size = stack_bytes;
  context.uc_link = nullptr;
  const auto self = std::bit_cast<std::uint64_t>(this);  // makecontext passes ints alone
  makecontext(&context, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
  setcontext(&context);
  std::abort();
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* const self = std::bit_cast<Fiber*>(std::uint64_t{high} << 32 | low);
  enter_stack(nullptr, &self->resumer_stack_, &self->resumer_stack_bytes_);
  for (;;) {
    (*self->body_)();
    self->has_ended_ = true;
    self->suspend();
  }
}

void Fiber::resume() {
  leave_stack(&resumer_fake_stack_, stack_.get(), stack_bytes);
  if (_setjmp(resumer_) == 0) {
    if (is_new_) begin();
    _longjmp(own_, 1);
  }
  enter_stack(resumer_fake_stack_, nullptr, nullptr);
}

void Fiber::suspend() {
  leave_stack(&own_fake_stack_, resumer_stack_, resumer_stack_bytes_);
  if (_setjmp(own_) == 0) _longjmp(resumer_, 1);
  enter_stack(own_fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
}

}  // namespace tandem::emulation
