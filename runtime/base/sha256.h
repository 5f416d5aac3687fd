#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/namespaces.h"

namespace tandem {

using Digest256 = std::array<std::uint8_t, 32>;

/// SHA-256 (FIPS 180-4) of bytes. It is our own, of a hundred lines, for what it is needed for is a single message of the control
/// plane: a library of cryptography would have to be linked into every program, the CUDA backend and the runner that is carried
/// to other machines. What it gives is held to the vectors of NIST and of RFC 4231.
Digest256 sha256(std::string_view bytes);

/// HMAC-SHA-256 (RFC 2104) of bytes under a key of any length.
Digest256 hmac_sha256(std::string_view key, std::string_view bytes);

/// Whether both are equal, in a time that does not tell where they differ.
bool equal_digests(const Digest256& a, const Digest256& b);

/// The 32 bytes as text, to be sent or hashed again.
std::string_view bytes_of(const Digest256& digest);

}  // namespace tandem
