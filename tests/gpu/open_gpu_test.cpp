// What the module sets before CUDA begins; with or without a GPU.
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "runtime/cuda/gpu.h"

namespace tandem::studies::open_gpu_test {
namespace {

constexpr const char* connections = "CUDA_DEVICE_MAX_CONNECTIONS";

void open_where_there_may_be_none() {
  try {
    open_gpu();
  } catch (const std::runtime_error&) {  // no driver, or no GPU
  }
}

TEST(OpenGpu, HasAConnectionForEachStreamUnlessToldOtherwise) {
  ::unsetenv(connections);
  open_where_there_may_be_none();
  EXPECT_STREQ(std::getenv(connections), "32");
  ::setenv(connections, "4", 1);
  open_where_there_may_be_none();
  EXPECT_STREQ(std::getenv(connections), "4");
  ::unsetenv(connections);
}

}  // namespace
}  // namespace tandem::studies::open_gpu_test
