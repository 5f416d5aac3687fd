#include "runtime/base/peak_rss.h"

#include <sys/resource.h>

namespace tandem {

Bytes peak_rss() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr Bytes kibibyte = 1024;
  return usage.ru_maxrss * kibibyte;
}

}  // namespace tandem
