#pragma once

namespace tandem {

// What backends are called on the command line, in results and in profiles.

inline constexpr const char* host_backend = "host";        ///< threads of this machine's CPU
inline constexpr const char* cuda_backend = "cuda";        ///< GPUs
inline constexpr const char* simgrid_backend = "simgrid";  ///< a simulation

}  // namespace tandem
