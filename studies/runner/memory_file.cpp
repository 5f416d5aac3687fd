#include "studies/runner/memory_file.h"

#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace tandem::studies {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

MemoryFile::MemoryFile() : descriptor_(::memfd_create("tandem", MFD_CLOEXEC)) {
  if (descriptor_ < 0) fail("cannot start a simulation process");
}

MemoryFile::~MemoryFile() { ::close(descriptor_); }

void MemoryFile::clear() const {
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) fail("cannot clear a simulation's result");
}

void MemoryFile::write(const std::string& text) const {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(descriptor_, text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) fail("cannot send the simulation's result");
    if (written > 0) done += static_cast<std::size_t>(written);
  }
}

std::string MemoryFile::read() const {
  std::string text(static_cast<std::size_t>(::lseek(descriptor_, 0, SEEK_END)), '\0');
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t got = ::pread(descriptor_, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got == 0 || (got < 0 && errno != EINTR)) fail("cannot read a simulation's result");
    if (got > 0) done += static_cast<std::size_t>(got);
  }
  return text;
}

}  // namespace tandem::studies
