#include "cli/program.h"

#include <malloc.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <new>
#include <utility>

#include "runtime/base/failure.h"
#include "runtime/base/large_pages.h"
#include "runtime/base/parallel.h"
#include "runtime/base/printable.h"
#include "runtime/base/sanitized.h"

namespace tandem::cli {

ExitCode complain(const std::string& program, const std::string& sentence, ExitCode code) {
  std::cerr << program << ": " << printable(sentence) << '\n';
  return code;
}

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

void warn_of_other_traces(const std::string& program, const std::vector<std::string>& others) {
  for (const std::string& other : others)
    std::cerr << program << ": warning: " << other << " was there before and is of another trace\n";
}

std::string exact_collectives_sentence(std::size_t kinds) {
  return std::to_string(kinds) + " kinds of collectives exact on crafted data\n";
}

ExitCode guarded(const std::string& program, const std::function<ExitCode()>& work) {
  try {
    return work();
  } catch (...) {
    const Failure failure = failure_of_exception();
    return complain(program, failure.text(), failure.code);
  }
}

int finished(const std::string& program, ExitCode code) {
  std::cout.flush();
  if (!std::cout && code == ExitCode::done) code = complain(program, "standard output cannot be written", ExitCode::failed);
  return static_cast<int>(code);
}

void start(const std::string& program) {
  constexpr int never = 1 << 30;
  mallopt(M_MMAP_THRESHOLD, never);
  mallopt(M_TRIM_THRESHOLD, never);
  mallopt(M_ARENA_MAX, static_cast<int>(most_threads()));  // what one thread frees, another has
  prefer_large_pages_for_heap(small_pieces_of_most_steps);
  auto log = spdlog::stderr_logger_st(program);
  log->set_pattern(program + ": %v (%o ms later)");
  spdlog::set_default_logger(std::move(log));
}

}  // namespace tandem::cli

#ifndef TANDEM_SANITIZED  // a sanitizer has its own
// What programs have in large pieces, whichever thread asks for it, is on large pages: a vector of two megabytes is soon four.
void* operator new(std::size_t bytes) {
  constexpr std::size_t large = std::size_t{2} << 20;
  void* const piece = std::malloc(std::max<std::size_t>(bytes, 1));
  if (piece == nullptr) throw std::bad_alloc();
  if (bytes >= large) tandem::prefer_large_pages(piece, bytes);
  return piece;
}
void operator delete(void* piece) noexcept { std::free(piece); }
void operator delete(void* piece, std::size_t /*bytes*/) noexcept { std::free(piece); }
#endif
