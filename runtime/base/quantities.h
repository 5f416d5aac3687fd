#pragma once

#include <string>

#include "runtime/base/units.h"

namespace tandem {

// Quantities as a person reads them.

/// Returns a time as "4.865 s", "746.10 ms" or "504.3 us".
std::string duration(Seconds time);

/// Returns a time with its sign: "-63.00 ms".
std::string change_of(Seconds time);

/// Returns a time as "40 s", "3 min" or "1.5 h".
std::string rounded(Seconds time);

/// Formats a share: 0.537 is "53.7 %".
std::string percent(double share);

/// Returns a share with its sign: "+3.1 %".
std::string percent_change(double share);

/// Returns bytes in GB with two digits: "77.30".
std::string gigabytes(Bytes bytes);

}  // namespace tandem
