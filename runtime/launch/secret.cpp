#include "runtime/launch/secret.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "runtime/launch/handshake.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr const char* remedy =
    "; set TANDEM_SECRET to the same text for all processes, of at least 16 characters such as `openssl rand -hex 32` writes";
constexpr mode_t for_its_owner = S_IRUSR | S_IWUSR, for_others = S_IRWXG | S_IRWXO;

std::string system_reason() { return std::generic_category().message(errno); }

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

/// Returns the text without the line's end behind it. `where` it was found.
std::string checked_secret(std::string secret, const std::string& where) {
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() >= shortest_secret && secret.size() <= longest_secret) return secret;
  throw std::runtime_error(where + " holds a secret of " + (secret.size() > longest_secret ? "more than " : "") +
                           std::to_string(std::min(secret.size(), longest_secret)) + " characters, expected " +
                           std::to_string(shortest_secret) + " to " + std::to_string(longest_secret) +
                           ", such as `openssl rand -hex 32` writes");
}

/// At most one byte more than a secret may have.
std::string read_all(int descriptor, const std::string& path) {
  std::string text;
  std::array<char, longest_secret> block;
  while (text.size() <= longest_secret + 2) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count == 0) break;
    if (count > 0)
      text.append(block.data(), static_cast<std::size_t>(count));
    else if (errno != EINTR)
      throw std::runtime_error(path + ", the file of the secret, cannot be read: " + system_reason());
  }
  return text;
}

/// Throws where others than its owner could read or replace it.
void require_private(int descriptor, const std::string& path) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0) throw std::runtime_error(path + " cannot be looked at: " + system_reason());
  if (S_ISFIFO(status.st_mode)) return;  // inherited from whoever wrote it
  if (!S_ISREG(status.st_mode)) throw std::runtime_error(path + " is no file; expected one that holds the secret");
  if ((status.st_mode & for_others) != 0)
    throw std::runtime_error(path + " holds the secret and may be read or written by others; chmod 600 " + path + " mends that");
  if (status.st_uid != ::geteuid() && status.st_uid != 0 && ::geteuid() != 0)
    throw std::runtime_error(path + " holds the secret and belongs to another user; expected a file of one's own");
}

std::string secret_in_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (file.number() < 0) throw std::runtime_error(path + ", the file of the secret, cannot be opened: " + system_reason());
  require_private(file.number(), path);
  return checked_secret(read_all(file.number(), path), path);
}

std::string in_hexadecimal(const Nonce& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) text.append({digits[byte >> 4], digits[byte & 0xF]});
  return text;
}

std::string folder_of_user(const Environment& environment) {
  const auto value = [&](const char* name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string() : found->second;
  };
  if (const std::string folder = value("XDG_CONFIG_HOME"); !folder.empty()) return folder + "/tandem";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.config/tandem";
  throw std::runtime_error(std::string("the processes have no secret by which to know each other, and HOME is not set") + remedy);
}

/// Writes a new secret beside the place and links it there: of several processes that come at once, on whatever machines, one
/// succeeds, and all read what it wrote.
void write_secret_once(const std::string& path) {
  const auto require = [&](bool held) {
    if (!held) throw std::runtime_error("the user's secret cannot be written to " + path + ": " + system_reason() + remedy);
  };
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  const std::string draft = path + "." + in_hexadecimal(draw_nonce()).substr(0, 16);
  {
    const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, for_its_owner));
    require(file.number() >= 0);
    const std::string text = in_hexadecimal(draw_nonce()) + "\n";
    const bool whole =
        ::write(file.number(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(file.number()) == 0;
    if (!whole) {
      const int reason = errno;
      ::unlink(draft.c_str());
      errno = reason;
    }
    require(whole);
  }
  const bool linked = ::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST;
  const int reason = errno;
  ::unlink(draft.c_str());
  errno = reason;
  require(linked);
}

std::string secret_of_user(const Environment& environment) {
  const std::string path = folder_of_user(environment) + "/secret";
  if (::access(path.c_str(), F_OK) != 0) write_secret_once(path);
  return secret_in_file(path);
}

}  // namespace

std::string secret_from(const Environment& environment) {
  if (const auto given = environment.find("TANDEM_SECRET"); given != environment.end())
    return checked_secret(given->second, "TANDEM_SECRET");
  if (const auto file = environment.find("TANDEM_SECRET_FILE"); file != environment.end()) return secret_in_file(file->second);
  return secret_of_user(environment);
}

Launch launch_of_this_process() {
  const Environment environment = process_environment();
  Launch launch = launch_from(environment);
  if (launch.size > 1) launch.secret = secret_from(environment);
  return launch;
}

}  // namespace tandem
