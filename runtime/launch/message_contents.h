#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/launch/progress_watch.h"

namespace tandem {

/// What the payloads of single messages say. Those that read throw std::invalid_argument unless the payload is one, whole and
/// with nothing behind it.

/// A process that comes to rank 0.
struct Hello {
  std::string version;  ///< of Tandem
  std::string session;
  std::uint64_t size = 0;
  std::uint64_t rank = 0;
  std::string host;
};
std::string payload_of(const Hello& hello);
Hello read_hello(std::string_view payload);

std::string report_payload(const ProgressReport& report);
ProgressReport read_report(std::string_view payload);

/// Rank 0's own report, without whether it waits.
std::string pulse_payload(const ProgressReport& rank_0);
ProgressReport read_pulse(std::string_view payload);

}  // namespace tandem
