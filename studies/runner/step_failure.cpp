#include "studies/runner/step_failure.h"

#include <charconv>
#include <exception>
#include <new>

#include "runtime/base/printable.h"

namespace tandem::studies {
namespace {

/// Takes ":number" off the end of `text`. Returns 0 where it does not end in one.
int take_number(std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return 0;
  int number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, number);
  if (read.ec != std::errc{} || read.ptr != end || number <= 0) return 0;
  text.erase(colon);
  return number;
}

Place place_of(std::string text) {
  Place place;
  const int last = take_number(text), before = take_number(text);
  place.line = before > 0 ? before : last;
  place.column = before > 0 ? last : 0;
  place.file = std::move(text);
  return place;
}

}  // namespace

std::string StepFailure::text() const { return code == ExitCode::wrong_input ? place.text() + ": " + sentence : sentence; }

StepFailure wrong_input(const std::string& what) {
  const std::size_t colon = what.find(": ");
  if (colon == std::string::npos) return {.code = ExitCode::wrong_input, .sentence = what};
  return {.code = ExitCode::wrong_input, .place = place_of(what.substr(0, colon)), .sentence = what.substr(colon + 2)};
}

StepFailure refusal(const std::string& what) {
  StepFailure failure = wrong_input(what);
  failure.refused = true;
  return failure;
}

StepFailure failure_of_exception() {
  try {
    throw;
  } catch (const InputError& error) {
    return wrong_input(printable(error.what()));
  } catch (const std::bad_alloc&) {
    return {.sentence = "out of memory on this machine"};
  } catch (const std::exception& error) {
    return {.sentence = printable(error.what())};
  } catch (...) {
    return {.sentence = "unknown exception"};
  }
}

}  // namespace tandem::studies
