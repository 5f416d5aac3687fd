#pragma once

#include <memory>
#include <string>

#include "studies/serve/http/request_guard.h"
#include "studies/serve/http/scenario_folder.h"

namespace tandem::studies {

/// What the page begins with.
struct FirstScenario {
  std::string name;  ///< of a file of the folder; empty: the page takes one
  std::string text;
};

/// Serves the page and hands on what it asks:
///
///     GET  /                     the page
///     GET  /api/start            what there is: scenarios, presets, the first scenario
///     GET  /api/file?name=F      {text}: a scenario of the folder
///     POST /api/job/KIND         a job (studies/serve/job_kinds.h)
///
/// All of /api needs the token, in X-Tandem-Token. A job is answered as it goes: a line of JSON after the other, {progress} and
/// at last {answer} or {failure}, and an empty one now and then; closing the connection ends it. With X-Tandem-Turn, of several
/// jobs of that name one runs at a time, and of those that come meanwhile the newest alone; the others are answered with 409.
/// Such a job is not ended by closing the connection, and is answered with its answer alone, or with {failure} and 422 (the input
/// is wrong) or 500.
class PageServer {
 public:
  static constexpr std::size_t most_input = 4'000'000;  ///< bytes of a request's body

  /// Binds the port of 127.0.0.1, 0 for any. Throws InputError where it is taken.
  PageServer(ScenarioFolder folder, FirstScenario first, RequestGuard guard, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  /// Answers until the process ends. Jobs go out by `door`.
  void serve(int door);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tandem::studies
