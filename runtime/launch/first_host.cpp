#include <algorithm>
#include <cctype>
#include <stdexcept>

#include "runtime/launch/launcher.h"

namespace tandem {

std::string first_host(const std::string& nodes) {
  constexpr const char* digits = "0123456789";
  std::string host;
  std::size_t at = 0;
  while (at < nodes.size() && nodes[at] != ',') {
    if (nodes[at] != '[') {
      host += nodes[at++];
      continue;
    }
    const std::size_t end = nodes.find_first_not_of(digits, at + 1);
    const std::size_t close = nodes.find(']', at);
    if (end == at + 1 || close == std::string::npos) throw std::invalid_argument("a bracket without number or end");
    host += nodes.substr(at + 1, end - at - 1);
    at = close + 1;
  }
  const auto belongs = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == ':'; };
  if (host.empty() || !std::ranges::all_of(host, belongs)) throw std::invalid_argument("no name of a host");
  return host;
}

}  // namespace tandem
