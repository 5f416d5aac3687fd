#include "runtime/launch/version.h"

namespace tandem {

std::string_view program_version() { return TANDEM_VERSION; }

}  // namespace tandem
