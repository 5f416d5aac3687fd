#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/kineto/against_simulation.h"

namespace tandem::cli {

std::string to_text(const AgainstSimulation& comparison, const Screen& screen = {});

}  // namespace tandem::cli
