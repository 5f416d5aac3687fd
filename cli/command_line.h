#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace tandem::cli {

/// What CLI11 refused, as one sentence with the nearest valid name or the help to read.
std::string usage_sentence(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tandem::cli
