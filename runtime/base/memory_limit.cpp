#include "runtime/base/memory_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>

#include "runtime/base/quantities.h"
#include "runtime/base/sanitized.h"

namespace tandem {
namespace {

constexpr Bytes any_amount = std::numeric_limits<Bytes>::max();

/// Lowers the soft limit alone, so that it can be raised again; never above the hard one.
void lower_soft_limit(__rlimit_resource resource, Bytes bytes) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0) throw std::system_error(errno, std::generic_category(), "cannot read a limit");
  limit.rlim_cur = std::min(static_cast<rlim_t>(std::max<Bytes>(bytes, 1)), limit.rlim_max);
  if (::setrlimit(resource, &limit) != 0) throw std::system_error(errno, std::generic_category(), "cannot limit memory");
}

std::string contents_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What stands after `key` at the start of a line.
std::optional<Bytes> number_after(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return {};
}

/// "0::/user.slice/x" of version 2, "9:memory:/x" of version 1.
std::string path_of_group(const std::string& groups, const std::string& controller) {
  std::istringstream lines(groups);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (line.substr(first + 1, second - first - 1) == controller) return line.substr(second + 1);
  }
  return {};
}

/// Whether a group's limit is one: version 2 says "max" where it is none, version 1 a number beyond any machine's memory.
bool is_limit(const std::string& max) {
  constexpr Bytes beyond_any_machine = Bytes{1} << 60;
  std::istringstream text(max);
  Bytes limit = 0;
  return (text >> limit) && limit < beyond_any_machine;
}

/// The least that any of the groups around this process leaves; a container sees its own group as the root.
Bytes left_in_groups() {
  const std::string groups = contents_of("/proc/self/cgroup");
  const auto in = [](std::string root, std::string path, const char* max, const char* current, const char* stat) {
    Bytes least = any_amount;
    for (;;) {
      std::string folder = root;
      folder += path;
      if (const std::string limit = contents_of(folder + "/" + max); is_limit(limit))
        least = std::min(least, left_in_group(limit, contents_of(folder + "/" + current), contents_of(folder + "/" + stat)));
      if (path.empty() || path == "/") return least;
      path.erase(path.rfind('/'));
    }
  };
  return std::min(in("/sys/fs/cgroup", path_of_group(groups, ""), "memory.max", "memory.current", "memory.stat"),
                  in("/sys/fs/cgroup/memory", path_of_group(groups, "memory"), "memory.limit_in_bytes", "memory.usage_in_bytes",
                     "memory.stat"));
}

}  // namespace

Bytes available_in(const std::string& meminfo) {
  constexpr Bytes kibibyte = 1024;
  return kibibyte * number_after(meminfo, "MemAvailable:").value_or(0);
}

Bytes left_in_group(const std::string& max, const std::string& current, const std::string& stat) {
  std::istringstream limit_text(max), current_text(current);
  Bytes limit = 0, used = 0;
  if (!(limit_text >> limit) || !(current_text >> used)) return -1;
  const Bytes reclaimable = number_after(stat, "inactive_file").value_or(0);
  return std::max<Bytes>(0, limit - std::max<Bytes>(0, used - reclaimable));
}

void limit_memory(Bytes bytes) { lower_soft_limit(RLIMIT_RSS, bytes); }

Bytes memory_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_RSS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    return static_cast<Bytes>(std::min<rlim_t>(limit.rlim_cur, any_amount));
  const Bytes available = available_in(contents_of("/proc/meminfo"));
  return std::min(available > 0 ? available : any_amount, left_in_groups());
}

void enforce_memory_limit() {
#ifndef TANDEM_SANITIZED
  const Bytes limit = memory_limit();
  if (limit != any_amount) lower_soft_limit(RLIMIT_DATA, limit);
#endif
}

std::string beyond_memory_limit_sentence() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "out of memory on this machine";
  return "needs more memory than the " + gigabytes(static_cast<Bytes>(limit.rlim_cur)) +
         " GB that it may take; expected a smaller scenario, or a larger --max-memory, which simulations that run at once share";
}

}  // namespace tandem
