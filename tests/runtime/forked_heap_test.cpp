#include "runtime/base/forked_heap.h"

#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <vector>

#include "runtime/base/sanitized.h"

namespace tandem::forked_heap_test {
namespace {

constexpr std::size_t pieces = 256, bytes_of_piece = 8192;  // each has a page of its own

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

/// Writes to pieces of a heap in a forked child. Returns whether fewer than a fourth of them took a page fault there, and the
/// parent's are as they were.
bool are_copied_at_once(std::size_t most) {
  std::vector<char*> heap;
  for (std::size_t i = 0; i < pieces; ++i) {
    heap.push_back(static_cast<char*>(std::malloc(bytes_of_piece)));
    heap.back()[0] = 'p';
  }
  const pid_t child = fork();
  if (child == 0) {
    copy_forked_heap(most);
    const long before = page_faults();
    bool is_copy = true;
    for (char* piece : heap) {
      is_copy = is_copy && piece[0] == 'p';
      piece[0] = 'c';
    }
    _exit(is_copy && page_faults() - before < static_cast<long>(pieces / 4) ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  for (char* piece : heap) {
    EXPECT_EQ(piece[0], 'p');
    std::free(piece);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool kernel_copies_at_once() {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool does = ::madvise(page, 4096, MADV_POPULATE_WRITE) == 0;
  ::munmap(page, 4096);
  return does;
}

TEST(ForkedHeap, IsCopiedAtOnceWhereItIsSmall) {
#ifdef TANDEM_SANITIZED
  GTEST_SKIP() << "the allocator is the sanitizer's";
#endif
  if (!kernel_copies_at_once()) GTEST_SKIP() << "the kernel is older than 5.14";
  EXPECT_TRUE(are_copied_at_once(std::numeric_limits<std::size_t>::max()));
}

TEST(ForkedHeap, IsCopiedPageByPageWhereItIsLarge) {
#ifdef TANDEM_SANITIZED
  GTEST_SKIP() << "the allocator is the sanitizer's";
#endif
  EXPECT_FALSE(are_copied_at_once(pieces * bytes_of_piece));
}

}  // namespace
}  // namespace tandem::forked_heap_test
