#include "runtime/base/failure.h"

#include <exception>
#include <new>
#include <utility>

#include "runtime/base/memory_limit.h"
#include "runtime/base/printable.h"

namespace tandem {

Failure failure_of_exception() {
  try {
    throw;
  } catch (const InputError& error) {
    Place place = error.place();
    place.file = printable(place.file);
    return {.code = ExitCode::wrong_input, .place = std::move(place), .sentence = printable(error.sentence())};
  } catch (const std::bad_alloc&) {
    return {.sentence = beyond_memory_limit_sentence()};
  } catch (const std::exception& error) {
    return {.sentence = printable(error.what())};
  } catch (...) {
    return {.sentence = "unknown exception"};
  }
}

}  // namespace tandem
