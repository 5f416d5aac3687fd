#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/sha256.h"

namespace tandem {

/// How rank 0 and a process that comes to it prove to each other that they know the run's secret, which is never sent. Three
/// messages of fixed lengths, each a pure function of bytes; before the third nothing else is read, and nothing allocated:
///
/// | from | bytes | |
/// |---|---|---|
/// | rank 0 | 8 + 32 | the protocol's name, a random number R |
/// | the process | 8 + 32 + 32 | the protocol's name, a random number P, HMAC(secret, "process" R P) |
/// | rank 0 | 32 | HMAC(secret, "rank 0" P R), or zeros: the process has another secret |
///
/// The numbers are drawn anew for each connection, so what was heard once proves nothing later; the words tell the two proofs
/// apart, so neither side can be had to compute the other's. What follows on the connection is neither signed nor hidden.
using Nonce = Digest256;

inline constexpr std::string_view protocol_name{"TANDEM\0\2", 8};  ///< ends with the version of the protocol
inline constexpr std::size_t challenge_size = protocol_name.size() + sizeof(Nonce);
inline constexpr std::size_t response_size = challenge_size + sizeof(Digest256);
inline constexpr std::size_t confirmation_size = sizeof(Digest256);

/// Random bytes from the system. Throws std::runtime_error when it has none.
Nonce draw_nonce();

std::string challenge_of_rank_0(const Nonce& of_rank_0);

enum class HandshakeVerdict : std::uint8_t {
  proven,
  no_handshake,    ///< the peer speaks another protocol
  another_secret,  ///< it does, but its proof is wrong
};

struct Response {
  HandshakeVerdict verdict = HandshakeVerdict::no_handshake;
  Nonce of_process{};  ///< when proven
};

/// What the process answers; nothing when the bytes are no challenge.
std::string response_to(std::string_view challenge, std::string_view secret, const Nonce& of_process);
/// Rank 0's look at that answer.
Response check_response(std::string_view response, std::string_view secret, const Nonce& of_rank_0);

std::string confirmation_of_rank_0(std::string_view secret, const Nonce& of_rank_0, const Nonce& of_process);
std::string refusal_of_rank_0();
/// The process' look at what rank 0 said last, to the challenge that it answered. `no_handshake`: a wrong proof.
HandshakeVerdict check_confirmation(std::string_view confirmation, std::string_view challenge, std::string_view secret,
                                    const Nonce& of_process);

}  // namespace tandem
