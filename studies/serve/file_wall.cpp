#include "studies/serve/file_wall.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tandem::studies {
namespace {

/// What the first version of Landlock knows; later ones add links between folders and cutting files off, which take a file that
/// is open for writing.
constexpr std::uint64_t every_access = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr std::uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;

/// The C library has no functions for these calls.
class FileRules {
 public:
  FileRules() {
    landlock_ruleset_attr handled{};
    handled.handled_access_fs = every_access;
    rules_ = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, sizeof(handled), 0));
  }
  ~FileRules() {
    if (rules_ >= 0) ::close(rules_);
  }
  FileRules(const FileRules&) = delete;
  FileRules& operator=(const FileRules&) = delete;

  bool are_there() const { return rules_ >= 0; }

  bool allow(const char* path, std::uint64_t access) const {
    landlock_path_beneath_attr below{};
    below.allowed_access = access;
    below.parent_fd = ::open(path, O_PATH | O_CLOEXEC);
    if (below.parent_fd < 0) return false;
    const bool added = ::syscall(SYS_landlock_add_rule, rules_, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
    ::close(below.parent_fd);
    return added;
  }

  bool enforce() const {
    return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::syscall(SYS_landlock_restrict_self, rules_, 0) == 0;
  }

 private:
  int rules_ = -1;
};

}  // namespace

bool wall_in(const std::filesystem::path& folder) {
  const FileRules rules;
  if (!rules.are_there()) return false;
  for (const char* about_itself : {"/proc", "/sys"}) rules.allow(about_itself, reading);
  rules.allow("/dev/null", LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE);  // where words of simulations go
  return rules.allow(folder.c_str(), reading) && rules.enforce();
}

}  // namespace tandem::studies
