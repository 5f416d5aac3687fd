#include "studies/serve/http/request_guard.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

namespace tandem::studies {
namespace {

/// The name without the port, which is another one where somebody forwards a port of another machine (ssh -L).
std::string_view name_in(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const bool has_port = colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos;
  return has_port ? host.substr(0, colon) : host;
}

bool is_this_machine(std::string_view host) {
  constexpr std::array<std::string_view, 3> names{"127.0.0.1", "localhost", "[::1]"};
  return std::ranges::find(names, name_in(host)) != names.end();
}

}  // namespace

const char* RequestGuard::refusal_of_page(const RequestOrigin& request) const {
  return is_this_machine(request.host) ? nullptr : "the host is not this machine, expected 127.0.0.1 or localhost";
}

const char* RequestGuard::refusal_of_site(const RequestOrigin& request) const {
  if (const char* refusal = refusal_of_page(request)) return refusal;
  constexpr std::string_view scheme = "http://";
  const bool is_own = request.origin.starts_with(scheme) && request.origin.substr(scheme.size()) == request.host;
  if (!request.origin.empty() && !is_own) return "the request comes from a page of another site";
  constexpr std::array<std::string_view, 3> own_sites{"", "same-origin", "none"};
  if (std::ranges::find(own_sites, request.fetch_site) == own_sites.end()) return "the request comes from a page of another site";
  return nullptr;
}

bool RequestGuard::knows_token(const RequestOrigin& request) const {
  if (request.token.size() != token_.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < token_.size(); ++i)
    differs |= static_cast<unsigned char>(token_[i]) ^ static_cast<unsigned char>(request.token[i]);
  return differs == 0;
}

std::string new_token() {
  std::array<unsigned char, 16> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "cannot draw a token");
  constexpr std::string_view digits = "0123456789abcdef";
  std::string token;
  for (const unsigned byte : bytes) token += {digits[byte / 16], digits[byte % 16]};
  return token;
}

}  // namespace tandem::studies
