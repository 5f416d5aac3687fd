#pragma once

#include <stdexcept>
#include <string>

#include "runtime/base/namespaces.h"

namespace tandem {

/// The place where an input is wrong. Line and column count from 1; 0 means the file as a whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
  std::string text() const;  ///< "file:line:column", shorter where line or column is unknown
};

/// Returns "place: sentence", or the sentence alone where the place says nothing.
std::string placed(const Place& place, const std::string& sentence);

/// Wrong input: exit code 2. The sentence says what was found, what was expected and the nearest valid name or value; `what()`
/// puts the place before it.
class InputError : public std::runtime_error {
 public:
  InputError(Place place, std::string sentence);

  const Place& place() const { return place_; }
  const std::string& sentence() const { return sentence_; }

 private:
  Place place_;
  std::string sentence_;
};

}  // namespace tandem
