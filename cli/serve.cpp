#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <system_error>

#include "cli/command.h"
#include "cli/options.h"
#include "runtime/base/memory_limit.h"
#include "runtime/base/text_file.h"
#include "studies/runner/step_runner.h"
#include "studies/serve/file_wall.h"
#include "studies/serve/foreman.h"
#include "studies/serve/http/page_server.h"

namespace tandem::cli {
namespace {

struct ServeCommand final : Command {
  std::string scenario;  ///< empty for one of the folder
  std::string folder;    ///< empty for the scenario's, or the current one
  int port = 8321;
  bool no_token = false;
  int jobs = 0;  ///< 0 for the default
  double time_limit = 60;

  CLI::App* add_to(CLI::App& app) override;
  ExitCode run() const override;

 private:
  studies::FirstScenario first_scenario() const;
};

CLI::App* ServeCommand::add_to(CLI::App& app) {
  constexpr int last_port = 65535, longest_s = 86400;
  CLI::App* command = app.add_subcommand("serve", "a page in the browser: change a scenario and see its step at once");
  command->add_option("scenario", scenario, "the scenario that the page begins with (default: one of the folder)")
      ->check(not_empty);
  command->add_option("--folder", folder, "the scenarios to choose from; no other file is read (default: the scenario's folder)")
      ->check(not_empty);
  command->add_option("--port", port, "the port of 127.0.0.1; 0 for any that is free")
      ->check(CLI::Range(0, last_port))
      ->capture_default_str();
  command->add_flag("--no-token", no_token, "let every user of this machine in");
  add_jobs_option(*command, jobs, "simulations");
  command->add_option("--time-limit", time_limit, "seconds that what the page asks may take; searches may take an hour")
      ->check(CLI::Range(0.1, static_cast<double>(longest_s)))
      ->capture_default_str();
  add_max_memory_option(*command, false);
  return command;
}

studies::FirstScenario ServeCommand::first_scenario() const {
  if (scenario.empty()) return {};
  const std::string name = std::filesystem::path(scenario).filename().string();
  return {name, read_text_file(scenario, "a scenario in YAML")};
}

/// The page's server is a child, as it has threads, and a process with threads cannot fork children that allocate memory.
pid_t start_server(studies::PageServer& server, studies::JobDoor& door, const studies::ScenarioFolder& folder) {
  const pid_t foreman = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "cannot start the page's server");
  if (child > 0) return child;
  ::setpgid(0, 0);  // an interrupt from the terminal is the foreman's to handle
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != foreman) ::_exit(1);
  door.inside.close();
  studies::wall_in(folder.path());
  server.serve(door.outside.get());
  ::_exit(1);
}

ExitCode ServeCommand::run() const {
  const std::filesystem::path beside = std::filesystem::path(scenario).parent_path();
  const studies::ScenarioFolder served(!folder.empty() ? std::filesystem::path(folder) : beside.empty() ? "." : beside);
  const std::size_t at_once = studies::processes_at_once(jobs);
  studies::JobLimits limits;
  // A step and what its fields may be are asked at once; a step's graph and its simulation share their memory.
  limits.at_once = at_once + 1;
  limits.memory = memory_limit() / static_cast<Bytes>(limits.at_once);
  limits.time = time_limit;
  limits.input = studies::PageServer::most_input;

  const studies::RequestGuard guard(no_token ? "" : studies::new_token());
  studies::PageServer server(served, first_scenario(), guard, port);
  studies::JobDoor door;
  const pid_t child = start_server(server, door, served);
  door.outside.close();
  std::cout << "http://127.0.0.1:" << server.port() << "/" << (no_token ? "" : "#token=" + guard.token()) << std::endl;
  const int signal = studies::Foreman(limits, {served.path(), at_once}, door.inside.get(), child).run();
  if (signal == 0) throw std::runtime_error("the page's server ended by itself");
  return ExitCode::done;
}

}  // namespace

std::unique_ptr<Command> make_serve() { return std::make_unique<ServeCommand>(); }

}  // namespace tandem::cli
