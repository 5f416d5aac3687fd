#include "runtime/cuda/module/nccl_library.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace tandem::nccl_library_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class NcclLibraryTest : public testing::Test {
 protected:
  void TearDown() override {
    ::unsetenv("TANDEM_NCCL_LIBRARY");
    ::unsetenv("FAKE_NCCL");
  }
};

std::string sentence_with(const std::string& file) {
  ::setenv("TANDEM_NCCL_LIBRARY", file.c_str(), 1);
  try {
    return "opened NCCL " + std::to_string(NcclLibrary().version());
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST_F(NcclLibraryTest, OpensWhatTheVariableNames) {
  EXPECT_EQ(sentence_with(TANDEM_FAKE_NCCL), "opened NCCL " + std::to_string(NCCL_VERSION_CODE));
}

TEST_F(NcclLibraryTest, SaysWhatIsMissing) {
  EXPECT_THAT(sentence_with("/nowhere/libnccl.so.2"),
              AllOf(HasSubstr("NCCL cannot be opened: /nowhere/libnccl.so.2"), HasSubstr("set TANDEM_NCCL_LIBRARY")));
  EXPECT_THAT(sentence_with("libm.so.6"), HasSubstr("'libm.so.6' is no NCCL"));
}

TEST_F(NcclLibraryTest, RefusesAnOldVersion) {
  ::setenv("FAKE_NCCL", "old", 1);
  EXPECT_THAT(sentence_with(TANDEM_FAKE_NCCL), AllOf(HasSubstr("is NCCL 2.27.7"), HasSubstr("of NCCL 2.28.0 or later")));
}

TEST_F(NcclLibraryTest, OpensTheRealOne) {
  void* const real = ::dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (real == nullptr) GTEST_SKIP() << ::dlerror();
  const NcclLibrary nccl;
  EXPECT_GE(nccl.version(), NcclLibrary::oldest);
  EXPECT_STREQ(nccl.ncclGetErrorString(ncclSuccess), "no error");
  EXPECT_THAT(nccl.what_is(ncclInvalidArgument), HasSubstr("invalid argument"));
}

}  // namespace
}  // namespace tandem::nccl_library_test
