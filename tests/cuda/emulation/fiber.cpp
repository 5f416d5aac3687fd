#include "tests/cuda/emulation/fiber.h"

#include <bit>
#include <cstdint>

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
  own_fake_stack_ = nullptr;
  forget_stack(stack_.get(), stack_bytes);
  getcontext(&own_);
  own_.uc_stack.ss_sp = stack_.get();
  own_.uc_stack.ss_size = stack_bytes;
  own_.uc_link = nullptr;
  const auto self = std::bit_cast<std::uint64_t>(this);  // makecontext passes ints alone
  makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = std::bit_cast<Fiber*>(std::uint64_t{high} << 32 | low);
  enter_stack(nullptr, &self->resumer_stack_, &self->resumer_stack_bytes_);
  (*self->body_)();
  leave_stack(nullptr, self->resumer_stack_, self->resumer_stack_bytes_);
  setcontext(&self->resumer_);
}

void Fiber::resume() {
  void* fake_stack = nullptr;
  leave_stack(&fake_stack, stack_.get(), stack_bytes);
  swapcontext(&resumer_, &own_);
  enter_stack(fake_stack, nullptr, nullptr);
}

void Fiber::suspend() {
  leave_stack(&own_fake_stack_, resumer_stack_, resumer_stack_bytes_);
  swapcontext(&own_, &resumer_);
  enter_stack(own_fake_stack_, &resumer_stack_, &resumer_stack_bytes_);
}

}  // namespace tandem::emulation
