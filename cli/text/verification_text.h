#pragma once

#include <string>

#include "cli/terminal/screen.h"
#include "studies/step/verification.h"

namespace tandem::cli {

/// The largest relative difference of the loss, of every gradient and of every updated weight.
std::string to_text(const Verification& verification, const Screen& screen = {});

}  // namespace tandem::cli
