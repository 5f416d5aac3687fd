#include "runtime/launch/handshake.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace tandem {
namespace {

constexpr std::string_view word_of_process = "process", word_of_rank_0 = "rank 0";

/// Of 32 bytes at a place of a message that is known to be long enough.
Digest256 digest_at(std::string_view bytes, std::size_t place) {
  Digest256 digest{};
  std::ranges::copy(bytes.substr(place, digest.size()), digest.begin());
  return digest;
}

Digest256 proof(std::string_view secret, std::string_view word, const Nonce& first, const Nonce& second) {
  return hmac_sha256(secret, std::string(word).append(bytes_of(first)).append(bytes_of(second)));
}

}  // namespace

Nonce draw_nonce() {
  Nonce nonce{};
  for (std::size_t filled = 0; filled < nonce.size();) {
    const ssize_t drawn = ::getrandom(nonce.data() + filled, nonce.size() - filled, 0);
    if (drawn > 0)
      filled += static_cast<std::size_t>(drawn);
    else if (errno != EINTR)
      throw std::runtime_error("the system gives no random numbers: " + std::generic_category().message(errno));
  }
  return nonce;
}

std::string challenge_of_rank_0(const Nonce& of_rank_0) { return std::string(protocol_name).append(bytes_of(of_rank_0)); }

std::string response_to(std::string_view challenge, std::string_view secret, const Nonce& of_process) {
  if (challenge.size() != challenge_size || !challenge.starts_with(protocol_name)) return {};
  const Digest256 own = proof(secret, word_of_process, digest_at(challenge, protocol_name.size()), of_process);
  return std::string(protocol_name).append(bytes_of(of_process)).append(bytes_of(own));
}

Response check_response(std::string_view response, std::string_view secret, const Nonce& of_rank_0) {
  if (response.size() != response_size || !response.starts_with(protocol_name)) return {};
  const Nonce of_process = digest_at(response, protocol_name.size());
  const Digest256 expected = proof(secret, word_of_process, of_rank_0, of_process);
  if (!equal_digests(expected, digest_at(response, challenge_size))) return {HandshakeVerdict::another_secret, {}};
  return {HandshakeVerdict::proven, of_process};
}

std::string confirmation_of_rank_0(std::string_view secret, const Nonce& of_rank_0, const Nonce& of_process) {
  return std::string(bytes_of(proof(secret, word_of_rank_0, of_process, of_rank_0)));
}

std::string refusal_of_rank_0() { return std::string(confirmation_size, '\0'); }

HandshakeVerdict check_confirmation(std::string_view confirmation, std::string_view challenge, std::string_view secret,
                                    const Nonce& of_process) {
  if (confirmation.size() != confirmation_size || challenge.size() != challenge_size) return HandshakeVerdict::no_handshake;
  const Digest256 expected = proof(secret, word_of_rank_0, of_process, digest_at(challenge, protocol_name.size()));
  if (equal_digests(expected, digest_at(confirmation, 0))) return HandshakeVerdict::proven;
  return confirmation == refusal_of_rank_0() ? HandshakeVerdict::another_secret : HandshakeVerdict::no_handshake;
}

}  // namespace tandem
