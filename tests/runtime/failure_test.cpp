// What a program and a step's process say of an exception.
#include "runtime/base/failure.h"

#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <stdexcept>

namespace tandem::failure_test {
namespace {

Failure described(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    return failure_of_exception();
  }
  return {.sentence = "nothing was thrown"};
}

TEST(Failure, DescribesExceptions) {
  const Failure wrong = described([] { throw InputError({"a\nb.yaml", 3, 14}, "is\twrong: expected b"); });
  EXPECT_EQ(wrong.code, ExitCode::wrong_input);
  EXPECT_EQ(wrong.place.file, "a?b.yaml");
  EXPECT_EQ(wrong.place.line, 3);
  EXPECT_EQ(wrong.place.column, 14);
  EXPECT_EQ(wrong.sentence, "is?wrong: expected b");
  EXPECT_EQ(wrong.text(), "a?b.yaml:3:14: is?wrong: expected b");
  EXPECT_EQ(described([] { throw std::bad_alloc(); }).text(), "out of memory on this machine");
  const Failure failed = described([] { throw std::runtime_error("no\nlink"); });
  EXPECT_EQ(failed.code, ExitCode::failed);
  EXPECT_EQ(failed.text(), "no?link");
}

}  // namespace
}  // namespace tandem::failure_test
