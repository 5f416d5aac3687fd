#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "studies/interop/export_target.h"
#include "studies/interop/import_source.h"
#include "tests/cli/help_text.h"
#include "tests/cli/run_command.h"

namespace tandem::cli::completion_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

using Words = std::vector<std::string>;

std::string script_for(const std::string& shell) {
  const CommandResult result = run_tandem({"completion", shell});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

Words subcommands() { return subcommands_in(run_tandem({"--help"}).out); }

Words options(const Words& command) {
  Words arguments = command;
  arguments.emplace_back("--help");
  return options_in(run_tandem(arguments).out);
}

/// A shell that has sourced the script.
class Bash {
 public:
  Bash() : script_(testing::TempDir() + "completion_" + std::to_string(::getpid()) + ".bash") {
    std::ofstream(script_) << script_for("bash");
  }
  ~Bash() { std::filesystem::remove(script_); }
  Bash(const Bash&) = delete;

  /// What bash offers for the last of these words, each of which is one to the shell: "=" stands alone.
  Words offers(const Words& words) const {
    std::string call = "source " + script_ + "; COMP_WORDS=(";
    for (const std::string& word : words) call += "'" + word + "' ";
    call += "); COMP_CWORD=" + std::to_string(words.size() - 1) + "; _tandem; printf '%s\\n' \"${COMPREPLY[@]}\"";
    return lines_of(call);
  }

  Words lines_of(const std::string& commands) const {
    const CommandResult result = run_program("/bin/bash", {"--norc", "-c", commands});
    EXPECT_EQ(result.err, "");
    std::istringstream in(result.out);
    Words lines;
    for (std::string line; std::getline(in, line);)
      if (!line.empty()) lines.push_back(line);
    return lines;
  }

  const std::string& script() const { return script_; }

 private:
  std::string script_;
};

TEST(Completion, BashIsToldWhatCompletesTandem) {
  const Bash bash;
  EXPECT_EQ(bash.lines_of("source " + bash.script() + "; complete -p tandem"), (Words{"complete -o default -F _tandem tandem"}));
}

TEST(Completion, OffersEverySubcommandOfHelp) {
  Words expected = subcommands();
  ASSERT_THAT(expected, Contains("simulate"));
  for (const std::string& option : options({})) expected.push_back(option);
  EXPECT_THAT(Bash().offers({"tandem", ""}), testing::UnorderedElementsAreArray(expected));
  EXPECT_THAT(Bash().offers({"tandem", "cal"}), UnorderedElementsAre("calibrate"));
}

TEST(Completion, OffersEveryOptionOfEverySubcommand) {
  const Bash bash;
  for (const std::string& command : subcommands()) {
    const Words expected = options({command});
    ASSERT_THAT(expected, Contains("--help")) << command;
    EXPECT_THAT(bash.offers({"tandem", command, "-"}), testing::UnorderedElementsAreArray(expected)) << command;
  }
}

template <typename Rows>
Words names_of(const Rows& rows) {
  Words names;
  for (const auto& row : rows) names.emplace_back(row.name);
  EXPECT_GE(names.size(), 9U);
  return names;
}

TEST(Completion, OffersTheValuesOfFixedChoices) {
  const Bash bash;
  EXPECT_THAT(bash.offers({"tandem", "execute", "--backend", ""}), UnorderedElementsAre("host", "cuda"));
  EXPECT_THAT(bash.offers({"tandem", "execute", "--backend", "c"}), UnorderedElementsAre("cuda"));
  EXPECT_THAT(bash.offers({"tandem", "execute", "--backend", "="}), UnorderedElementsAre("host", "cuda"));
  EXPECT_THAT(bash.offers({"tandem", "execute", "--backend", "=", "h"}), UnorderedElementsAre("host"));
  EXPECT_THAT(bash.offers({"tandem", "simulate", "--collectives", ""}), UnorderedElementsAre("fluid", "steps"));
  EXPECT_THAT(bash.offers({"tandem", "export", "--to", ""}), testing::UnorderedElementsAreArray(names_of(export_targets())));
  EXPECT_THAT(bash.offers({"tandem", "import", "--from", ""}), testing::UnorderedElementsAreArray(names_of(import_sources())));
}

// Bash itself offers files where nothing is offered.
TEST(Completion, LeavesFilesToBash) {
  const Bash bash;
  EXPECT_THAT(bash.offers({"tandem", "simulate", ""}), IsEmpty());
  EXPECT_THAT(bash.offers({"tandem", "simulate", "--trace", ""}), IsEmpty());
  EXPECT_THAT(bash.offers({"tandem", "sweep", "--jobs", ""}), IsEmpty());
}

TEST(Completion, ZshHasEverySubcommandAndOption) {
  const std::string script = script_for("zsh");
  EXPECT_THAT(script, testing::StartsWith("#compdef tandem\n"));
  for (const std::string& command : subcommands()) {
    const std::size_t begin = script.find("\n    " + command + ")\n");
    ASSERT_NE(begin, std::string::npos) << command;
    const std::string part = script.substr(begin, script.find("\n      ;;\n", begin) - begin);
    for (const std::string& option : options({command})) EXPECT_THAT(part, HasSubstr(option)) << command;
  }
  EXPECT_THAT(script, HasSubstr(":value:(host cuda)'"));
}

TEST(Completion, ZshReadsTheScript) {
  if (!std::filesystem::exists("/usr/bin/zsh") && !std::filesystem::exists("/bin/zsh")) GTEST_SKIP() << "there is no zsh here";
  const std::string path = testing::TempDir() + "completion_" + std::to_string(::getpid()) + ".zsh";
  std::ofstream(path) << script_for("zsh");
  const CommandResult result = run_program(
      "/usr/bin/env", {"zsh", "-f", "-c",
                       "autoload -Uz compinit; compinit -u -D; source " + path + "; print $_comps[tandem]; whence -w _tandem"});
  std::filesystem::remove(path);
  EXPECT_EQ(result.out, "_tandem\n_tandem: function\n") << result.err;
}

TEST(Completion, OtherShellsAreRefused) { expect_refusal(run_tandem({"completion", "fish"}), 2, {"fish", "bash", "zsh"}); }

TEST(Completion, IsHiddenFromHelp) {
  EXPECT_THAT(subcommands(), Not(Contains("completion")));
  EXPECT_THAT(run_tandem({}).err, Not(HasSubstr("completion")));
}

}  // namespace
}  // namespace tandem::cli::completion_test
