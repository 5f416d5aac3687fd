// What only a terminal is shown: colours, texts of its width, progress.
#include "tests/cli/terminal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "cli/terminal/progress.h"
#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::terminal_test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::string tiny = scenario_file("tiny-host");

/// The text without what differs from run to run.
std::string without_run_costs(const std::string& text) {
  return std::regex_replace(text, std::regex("in [0-9.]+ (s|ms|us) and [0-9]+ MB"), "in T and M");
}

class Terminal : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = missing_terminal(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(Terminal, HasColoursAndTheTextOfAPipe) {
  const Shown shown = run_on_terminal({"simulate", tiny}, 130);
  const CommandResult piped = run_tandem({"simulate", tiny});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_THAT(shown.text, HasSubstr("\x1b["));
  EXPECT_THAT(piped.out, Not(HasSubstr("\x1b")));
  EXPECT_EQ(without_run_costs(as_plain_text(shown.text)), without_run_costs(piped.out));
}

TEST_F(Terminal, HasNoColoursWhereTheyAreNotWanted) {
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, std::string>>{{"NO_COLOR", "1"}, {"TERM", "dumb"}, {"TERM", ""}})
    EXPECT_THAT(run_on_terminal({"simulate", tiny}, 80, {{name, value}}).text, Not(HasSubstr("\x1b"))) << name;
  EXPECT_THAT(run_on_terminal({"simulate", tiny}, 80, {{"NO_COLOR", ""}}).text, HasSubstr("\x1b[1m"));
}

TEST_F(Terminal, SaysHowWideItIs) {
  const std::string two_pods = TANDEM_SOURCE_DIR "/tests/cli/data/two-pods.yaml";
  for (const std::vector<std::string>& command : {std::vector<std::string>{"simulate", tiny},
                                                  {"topology", two_pods},
                                                  {"execute", tiny, "--backend", "host", "--verify"},
                                                  {"crosscheck", tiny, "--backend", "host"}}) {
    EXPECT_LE(widest_line(as_plain_text(run_on_terminal(command, 60).text)), 60U) << command.front();
  }
  const std::string narrow = run_on_terminal({"topology", two_pods}, 60).text;
  EXPECT_EQ(run_on_terminal({"topology", two_pods}, 200, {{"COLUMNS", "60"}}).text, narrow);
  EXPECT_EQ(as_plain_text(run_on_terminal({"topology", two_pods}, 100, {{"COLUMNS", "many"}}).text),
            as_plain_text(run_on_terminal({"topology", two_pods}, 100).text));
  EXPECT_EQ(run_tandem({"topology", two_pods}).out, as_plain_text(run_on_terminal({"topology", two_pods}, 200).text));
}

TEST_F(Terminal, ShowsProgressAndTakesItAway) {
  const auto program = [] {
    ProgressBar bar(0);
    bar.show("gemm", 0.419, 12.0);
  };
  const Shown shown = call_on_terminal(program, 70);
  EXPECT_THAT(shown.text, HasSubstr("\r\x1b[Kgemm  [########------------]  41 %, about 12 s left"));
  EXPECT_EQ(as_plain_text(shown.text), "");
}

// How much progress is shown depends on the machine; none of it stays.
TEST_F(Terminal, KeepsNoProgressOfACalibration) {
  const TemporaryFolder folder;
  const std::vector<std::string> command = {"calibrate", "--backend", "host", "--budget", "3", "--out", folder / "p"};
  const Shown shown = run_on_terminal(command, 70);
  EXPECT_EQ(shown.exit_code, 0) << shown.text;
  EXPECT_THAT(as_plain_text(shown.text), Not(ContainsRegex("\\[[#-]+\\]")));
}

TEST_F(Terminal, AShortRunShowsNoProgress) { EXPECT_THAT(run_on_terminal({"topology", tiny}).text, Not(HasSubstr("\r"))); }

TEST(ProgressText, SaysWhatIsLeft) {
  EXPECT_EQ(progress_text("simulating", 0, std::nullopt), "simulating  [--------------------]   0 %");
  EXPECT_EQ(progress_text("simulating", 0.419, 12.0), "simulating  [########------------]  41 %, about 12 s left");
  EXPECT_EQ(progress_text("gemm with many words", 0.5, 3.0, 54), "gemm...  [##########----------]  50 %, about 3 s left");
  EXPECT_EQ(progress_text("simulating", 1.01, 0.0), "simulating  [####################] 100 %, about 0 s left");
}

}  // namespace
}  // namespace tandem::cli::terminal_test
