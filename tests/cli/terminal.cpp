#include "tests/cli/terminal.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <sstream>
#include <system_error>

#include "cli/terminal/screen.h"

namespace tandem::cli {

std::string missing_terminal() {
  int terminal = -1, program = -1;
  if (::openpty(&terminal, &program, nullptr, nullptr, nullptr) != 0)
    return "no pseudo-terminal can be opened (is /dev/pts mounted?): " + std::generic_category().message(errno);
  ::close(terminal);
  ::close(program);
  return "";
}

namespace {

/// What `child`, which ends the process it runs in, writes to a terminal of that many columns.
Shown shown_by(const std::function<void()>& child, int columns) {
  winsize size{};
  size.ws_col = static_cast<unsigned short>(columns);
  size.ws_row = 40;
  int terminal = -1;
  std::fflush(stdout);  // or the child writes once more what is still in the buffer
  const pid_t process = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (process < 0) throw std::system_error(errno, std::generic_category(), "forkpty");
  if (process == 0) {
    constexpr unsigned time_limit_s = 120;
    ::alarm(time_limit_s);
    ::unsetenv("COLUMNS");
    ::unsetenv("NO_COLOR");
    ::setenv("TERM", "xterm", 1);
    child();
    ::_exit(127);
  }
  Shown shown;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(terminal, buffer, sizeof buffer)) > 0;)
    shown.text.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  ::waitpid(process, &status, 0);
  ::close(terminal);
  if (WIFEXITED(status)) shown.exit_code = WEXITSTATUS(status);
  shown.text = std::regex_replace(shown.text, std::regex("\r\n"), "\n");
  return shown;
}

}  // namespace

Shown run_on_terminal(const std::vector<std::string>& arguments, int columns,
                      const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::string> words = {TANDEM_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto program = [&] {
    for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
    ::execv(argv.front(), argv.data());
  };
  return shown_by(program, columns);
}

Shown call_on_terminal(const std::function<void()>& function, int columns) {
  const auto program = [&] {
    function();
    ::_exit(0);
  };
  return shown_by(program, columns);
}

std::string as_plain_text(const std::string& shown) {
  const std::string kept = std::regex_replace(shown, std::regex("\r\x1b\\[K([^\n\r]*(?=\r\x1b\\[K))?"), "");
  return std::regex_replace(kept, std::regex("\x1b\\[[0-9;]*m"), "");
}

std::size_t widest_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, columns_of(line));
  return widest;
}

}  // namespace tandem::cli
