#include "traces/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace tandem::traces {
namespace {

constexpr std::size_t buffer_bytes = std::size_t{1} << 20;
constexpr int most_links = 40;               // Linux's own limit (MAXSYMLINKS)
constexpr int most_name_attempts = 1 << 16;  // names taken by other writers
constexpr mode_t permissions = 0666;         // less the umask

/// Whether `path` names what only takes a stream of bytes: a pipe, a terminal, a device, or a descriptor under /proc.
bool is_stream(const std::string& path) {
  struct stat status {};
  return path.starts_with("/proc/") ||
         (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode));
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

/// Makes names for a file that must not be seen yet; they are tried until one is free.
std::string hidden_name_beside(const std::string& path, int attempt) {
  return folder_of(path) + "/.tandem-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
}

/// Calls again what a signal interrupted.
template <typename Call>
int until_not_interrupted(const Call& call) {
  int result = 0;
  do result = call();
  while (result < 0 && errno == EINTR);
  return result;
}

int open_file(const std::string& path, int flags) {
  return until_not_interrupted([&] { return ::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, permissions); });
}

}  // namespace

OutputFile::OutputFile(std::string path) : OutputFile(path, path) {}

OutputFile::OutputFile(std::string path, std::string shown) : path_(std::move(shown)), target_(std::move(path)) {
  if (target_.empty()) fail(ENOENT);
  std::error_code error;
  for (int links = 0; !is_stream(target_) && std::filesystem::is_symlink(target_, error); ++links) {
    if (links == most_links) fail(ELOOP);
    target_ = std::filesystem::path(folder_of(target_)) / std::filesystem::read_symlink(target_, error);
    if (error) fail(error.value());
  }
  if (std::filesystem::is_directory(target_, error) || target_.ends_with('/')) fail(EISDIR);

  if (is_stream(target_)) {
    descriptor_ = open_file(target_, 0);
    target_.clear();
  } else {
    open_beside_target();
  }
  if (descriptor_ < 0) fail(errno);
  buffer_.reserve(buffer_bytes);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::open_beside_target() {
  descriptor_ = open_file(folder_of(target_), O_TMPFILE);
  // A file system without unnamed files says EOPNOTSUPP; a kernel without them takes the folder for the file (EISDIR).
  if (descriptor_ >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return;

  for (int attempt = 0; attempt < most_name_attempts; ++attempt) {
    TidiedName name(hidden_name_beside(target_, attempt));
    descriptor_ = open_file(name.path(), O_CREAT | O_EXCL);
    if (descriptor_ >= 0) {
      temporary_ = std::move(name);
      return;
    }
    const int error = errno;
    if (error == EEXIST) name.keep();  // another writer's
    errno = error;
    if (error != EEXIST) return;
  }
}

void OutputFile::write(std::string_view bytes) {
  if (committed_) throw std::logic_error("write to '" + path_ + "' after its commit");
  if (buffer_.size() + bytes.size() > buffer_bytes) flush();
  if (bytes.size() >= buffer_bytes) {
    put(bytes);
  } else {
    buffer_.append(bytes);
  }
}

void OutputFile::flush() {
  put(buffer_);
  buffer_.clear();
}

void OutputFile::put(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void OutputFile::commit() {
  if (committed_) throw std::logic_error("'" + path_ + "' is committed already");
  flush();
  if (target_.empty()) {
    close();
  } else {
    if (until_not_interrupted([&] { return ::fsync(descriptor_); }) != 0) fail(errno);  // a rename must never outrun the contents
    if (temporary_.empty()) link_into_place();
    close();
    if (!temporary_.empty() && ::rename(temporary_.path().c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.keep();
  }
  committed_ = true;
}

/// Gives the unnamed file the target's name; or, where that is taken, a hidden one that is then renamed over it, because a link
/// never replaces.
void OutputFile::link_into_place() {
  const std::string unnamed = "/proc/self/fd/" + std::to_string(descriptor_);
  const auto link_as = [&](const std::string& name) {
    if (::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
    if (errno != EEXIST) fail(errno);
    return false;
  };
  if (link_as(target_)) return;
  for (int attempt = 0; attempt < most_name_attempts; ++attempt) {
    TidiedName name(hidden_name_beside(target_, attempt));
    if (link_as(name.path())) {
      temporary_ = std::move(name);
      return;
    }
    name.keep();  // another writer's
  }
  fail(EEXIST);
}

void OutputFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR)
    fail(errno);  // interrupted, it is closed on Linux, see close(2)
}

void OutputFile::fail(int error) const {
  throw std::runtime_error("cannot write '" + path_ + "': " + std::generic_category().message(error));
}

}  // namespace tandem::traces
