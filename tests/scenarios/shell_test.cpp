// Scripts that are followed without being run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

#include "runtime/base/input_error.h"
#include "scenarios/shell/arithmetic.h"
#include "scenarios/shell/evaluate.h"
#include "scenarios/shell/patterns.h"

namespace tandem::scenarios::shell_test {
namespace {

using shell::Evaluated;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Evaluated follow(const std::string& script, const std::vector<std::string>& given = {}) {
  return shell::evaluate_script(script, "s.sh", given);
}

/// The words of what is started, with what is unknown by its name.
std::vector<std::string> words_of(const Evaluated& script, std::size_t command = 0) {
  std::vector<std::string> words;
  for (const shell::Text& word : script.started.at(command).words) words.push_back(script.unknowns.readable(word.text));
  return words;
}

TEST(Shell, KeepsPlaces) {
  const Evaluated script = follow("A=(\n  --x 1\n  --y)\nrun a \\\n  b ${A[@]}\n");
  const std::vector<shell::Text>& words = script.started.at(0).words;
  ASSERT_EQ(words.size(), 6);
  EXPECT_EQ(words[1].place.text(), "s.sh:4:5");
  EXPECT_EQ(words[2].place.text(), "s.sh:5:3");
  EXPECT_EQ(words[3].place.text(), "s.sh:2:3");  // where it was written
  EXPECT_EQ(words[5].place.text(), "s.sh:3:3");
}

TEST(Shell, MarksWhatIsNotKnown) {
  const Evaluated script = follow("N=$(nproc)\nrun $A ${B:-2} $N x$1 $((N * 2)) $((C + 1))\n");
  EXPECT_THAT(words_of(script), ElementsAre("run", "$A", "2", "the output of `nproc`", "x$1", "the output of `nproc`", "$C"));
  const auto unknowns = script.unknowns.all_of(script.started[0].words[3].text);
  ASSERT_EQ(unknowns.size(), 1);
  EXPECT_EQ(unknowns[0]->setting, "N");  // what takes the output can be given in its place
  EXPECT_THAT(words_of(follow("N=$(nproc)\nrun $N $1\n", {"N=8", "1=a b"})), ElementsAre("run", "8", "a", "b"));
}

/// As bash 5.2 does, but for a number beyond 2^64, which it lets wrap around.
TEST(Shell, CountsArgumentsByAnyNumber) {
  const std::string function = "f() { run \"${00}\" \"${01}\" \"$2\" \"${003}\" \"[${99999999999999999999}]\"; }\nf x y\n";
  EXPECT_THAT(words_of(follow(function)), ElementsAre("run", "s.sh", "x", "y", "", "[]"));
}

TEST(Shell, FollowsEachWayOfWhatItCannotTell) {
  const Evaluated script = follow("A=1\nC=(x)\nif [ $MODE = a ]; then A=2; B=3; C+=(y); else B=3; fi\nrun $A $B ${C[@]}\n");
  EXPECT_THAT(words_of(script),
              ElementsAre("run", "the condition in line 3, of $MODE", "3", "x", "the condition in line 3, of $MODE"));
  EXPECT_THAT(script.unknowns.first_of(script.started[0].words[1].text).sentence(), HasSubstr("expected --env MODE=VALUE"));
  EXPECT_THAT(words_of(follow("A=1\nif [ $MODE = a ]; then A=2; fi\nrun $A\n", {"MODE=a"})), ElementsAre("run", "2"));
  // A way that ends the script is none that it is meant to take.
  EXPECT_THAT(words_of(follow("if [ ! -f data ]; then echo no; exit 1; fi\nmkdir x || exit 1\nrun a\n"), 1),
              ElementsAre("run", "a"));
}

TEST(Shell, WritesListsIntoVariables) {
  const std::string list = "L=()\nfor ((i = 0; i < 4; ++i)); do L+=($((i > 0))); done\n";
  EXPECT_THAT(words_of(follow(list + "printf -v F '[%s]' \"$(IFS=', '; echo \"${L[*]}\")\"\nrun $F \"${L[*]}\"\n")),
              ElementsAre("run", "[0,1,1,1]", "0 1 1 1"));  // a substitution leaves IFS as it was
  EXPECT_THAT(words_of(follow("run $(printf '%s-%d,' a 1 b 2) $(printf 'x%%')\n")), ElementsAre("run", "a-1,b-2,", "x%"));
  EXPECT_THAT(words_of(follow("printf -v F '%04.1f' 2\nrun $F\n")), ElementsAre("run", "what `printf -v` writes"));
}

TEST(Shell, TakesUnsetVariablesAsEmptyWhereAScriptAsks) {
  const Evaluated script = follow("if [ -z ${A} ]; then A=1; fi\n[[ -n $B ]] && B=2\nrun $A $B\n");
  EXPECT_THAT(words_of(script), ElementsAre("run", "1", "$B"));
  EXPECT_THAT(script.assumed,
              ElementsAre("$A is empty, as nothing sets it (--env A=VALUE)", "$B is empty, as nothing sets it (--env B=VALUE)"));
}

// Options that nobody gives leave defaults as they are.
TEST(Shell, LoopsOverArgumentsThatNobodyGave) {
  const std::string script =
      "T=4\nif [ $# -gt 9 ]; then exit 1; fi\nwhile [[ $# -gt 0 ]]; do case $1 in --t) T=$2; shift 2;; *) shift;; esac; done\n"
      "while getopts t: o; do case $o in t) T=$OPTARG;; esac; done\nfor a in \"$@\"; do T=$a; done\nrun $T\n";
  const Evaluated without = follow(script);
  EXPECT_THAT(words_of(without), ElementsAre("run", "4"));
  EXPECT_THAT(without.assumed, ElementsAre("the script gets no arguments (--env 1=VALUE)"));
  const std::string parses = "T=4\nwhile [ $# -gt 0 ]; do case $1 in --t) T=$2; shift 2;; *) shift;; esac; done\nrun $T\n";
  EXPECT_THAT(words_of(follow(parses, {"1=--x", "2=--t", "3=8"})), ElementsAre("run", "8"));
}

TEST(Shell, ExecutesNothing) {
  const Evaluated script =
      follow("echo a > /tmp/tandem_shell_test_must_not_exist\nX=`touch /tmp/tandem_shell_test_must_not_exist`\n");
  EXPECT_THAT(script.started, IsEmpty());
  EXPECT_NE(std::remove("/tmp/tandem_shell_test_must_not_exist"), 0);
}

TEST(Shell, ReadsInnerScriptsAndHereDocuments) {
  EXPECT_THAT(words_of(follow("T=4\nsrun bash -c \"run --t $T 'a b'\"\n")), ElementsAre("run", "--t", "4", "a b"));
  EXPECT_THAT(words_of(follow("T=4\nsbatch <<EOF\n#SBATCH -N 2\nrun $T \\$LATER\nEOF\n")), ElementsAre("run", "4", "$LATER"));
  EXPECT_THAT(words_of(follow("cat <<'X' > f\nrun a\nX\nrun b\n"), 1), ElementsAre("run", "b"));
}

TEST(Shell, ArithmeticIsBashs) {
  const auto value = [](const std::string& text) {
    std::string unknown;
    const shell::ArithmeticScope scope{.read = [](const std::string& name, const std::string&) { return name == "n" ? "7" : ""; },
                                       .write = [](const std::string&, const std::string&, std::int64_t) {}};
    return shell::evaluate_arithmetic(text, {.file = "s"}, scope, unknown).value();
  };
  EXPECT_EQ(value("1 + 2 * 3 ** 2 % 5"), 4);  // 1 + ((2 * 9) % 5)
  EXPECT_EQ(value("-2 ** 2"), 4);             // signs bind more than powers
  EXPECT_EQ(value("n > 6 && n < 8 ? 0x10 : 010"), 16);
  EXPECT_EQ(value("9223372036854775807 + 1"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(value("0 && 1 / 0"), 0);  // what is not reached is not done
  EXPECT_EQ(value("2#101 + unset"), 5);
  for (const char* wrong : {"1 +", "1 / 0", "08", "(1", "a b", "2 ** -1"}) EXPECT_THROW(value(wrong), InputError) << wrong;
}

TEST(Shell, PatternsMatch) {
  EXPECT_TRUE(shell::matches_pattern("a.py", "*.py"));
  EXPECT_TRUE(shell::matches_pattern("b7", "[!a][0-9]"));
  EXPECT_FALSE(shell::matches_pattern("ab", "a\\*"));
  EXPECT_EQ(shell::without_suffix("a.b.c", ".*", false), "a.b");
  EXPECT_EQ(shell::without_suffix("a.b.c", ".*", true), "a");
  EXPECT_EQ(shell::with_replaced("aXbX", "X", "--", true), "a--b--");
}

}  // namespace
}  // namespace tandem::scenarios::shell_test
