#include "runtime/cuda/emulation/fiber.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <vector>

namespace tandem::emulation::fiber_test {
namespace {

/// Throws, catches and suspends on a stack of its own, and counts how far it came.
void come_as_far_as(Fiber& fiber, std::vector<int>& steps, std::size_t place) {
  ++steps[place];
  fiber.suspend();
  try {
    throw std::runtime_error("on this stack");
  } catch (const std::runtime_error&) {
    ++steps[place];
  }
  fiber.suspend();
  ++steps[place];
}

TEST(Fiber, TakesOneBodyAfterAnotherWhetherTheFirstEndedOrNot) {
  constexpr std::size_t count = 16;
  constexpr int whole = 3;  // resumes, and steps
  std::vector<Fiber> fibers(count);
  for (const int resumes : {whole, 1, whole, whole, 2, 0, whole}) {
    std::vector<int> steps(count, 0);
    std::size_t now = 0;
    const std::function<void()> body = [&] { come_as_far_as(fibers[now], steps, now); };
    for (Fiber& fiber : fibers) fiber.start(body);
    for (int i = 0; i < resumes; ++i)
      for (now = 0; now < count; ++now) fibers[now].resume();
    EXPECT_EQ(steps, std::vector<int>(count, resumes));
  }
}

TEST(Fiber, TakesTheBodyThatItWasGivenLast) {
  Fiber fiber;
  int ran = 0;
  const std::function<void()> first = [&] { ran = 1; }, second = [&] { ran = 2; };
  fiber.start(first);
  fiber.resume();
  EXPECT_EQ(ran, 1);
  fiber.start(first);
  fiber.start(second);
  fiber.resume();
  EXPECT_EQ(ran, 2);
}

}  // namespace
}  // namespace tandem::emulation::fiber_test
