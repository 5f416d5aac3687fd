#pragma once

#include <string>

#include "runtime/launch/launcher.h"

namespace tandem {

inline constexpr std::size_t shortest_secret = 16, longest_secret = 4096;

/// Returns the secret by which the processes of a run know each other; the first of these that is there counts:
///
/// 1. TANDEM_SECRET, the secret itself;
/// 2. TANDEM_SECRET_FILE, a file or an inherited descriptor (/dev/fd/N) that holds it, which nobody but its owner may read;
/// 3. the user's own secret, `tandem/secret` in XDG_CONFIG_HOME or else in .config of HOME. Whoever comes first draws it at
/// random
///    and writes it, readable by its owner alone, so that all processes of a user who see one home directory have the same.
///
/// Throws std::runtime_error, one sentence with the remedy, for a secret that is too short or too long, a file that cannot be
/// read or that others may read, or where none can be had.
std::string secret_from(const Environment& environment);

/// What the environment says of this process (see launch_from), with the secret where there are several.
Launch launch_of_this_process();

}  // namespace tandem
