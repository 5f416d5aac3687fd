#pragma once

#include <string>
#include <string_view>

namespace tandem::studies {

/// What of a request says where it comes from. Empty: it has no such header.
struct RequestOrigin {
  std::string_view host;        ///< "127.0.0.1:8321"
  std::string_view origin;      ///< "http://127.0.0.1:8321"
  std::string_view fetch_site;  ///< Sec-Fetch-Site, which browsers set and pages cannot
  std::string_view token;
};

/// Decides who may ask. A site that somebody visits can have the browser send requests to this machine, and can have a name of
/// its own lead here (DNS rebinding): the former have its name as their origin, the latter as their host. The token keeps the
/// other users of this machine out.
class RequestGuard {
 public:
  /// An empty token lets everybody in who asks from this machine.
  explicit RequestGuard(std::string token) : token_(std::move(token)) {}

  /// Why a request may not have the page; null where it may. The page holds nothing that is secret.
  const char* refusal_of_page(const RequestOrigin& request) const;
  /// Why a request comes from another site; null where it does not.
  const char* refusal_of_site(const RequestOrigin& request) const;
  /// Whether the request knows the token. Takes as long for any wrong one of the right length.
  bool knows_token(const RequestOrigin& request) const;

  const std::string& token() const { return token_; }

 private:
  std::string token_;
};

/// Returns 32 random hexadecimal digits from the system. Throws std::system_error.
std::string new_token();

}  // namespace tandem::studies
