// Random scripts, which bash runs and which are followed here: the same words. They set variables and print, and nothing else.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <random>

#include "runtime/base/input_error.h"
#include "scenarios/shell/evaluate.h"

namespace tandem::scenarios::shell_against_bash_test {
namespace {

class Generator {
 public:
  explicit Generator(std::uint32_t seed) : random_(seed) {}

  std::string script() {
    std::string text = "A=a\nB=\"x y\"\nC=\nN=8\nM=3\nD=--k\nARR=(1 \"2 3\")\n";
    const int count = 3 + below(10);
    for (int i = 0; i < count; ++i) text += statement(0) + "\n";
    return text + "emit end \"$A\" \"$B\" \"$C\" \"$N\" \"$M\" \"$D\" \"${ARR[@]}\"\n";
  }

 private:
  std::mt19937 random_;

  int below(int n) { return static_cast<int>(random_() % static_cast<std::uint32_t>(n)); }
  std::string one_of(std::initializer_list<const char*> choices) {
    return *(choices.begin() + below(static_cast<int>(choices.size())));
  }
  std::string name() { return one_of({"A", "B", "C", "N", "M", "D"}); }

  std::string expression(int depth) {
    if (depth > 2 || below(3) == 0) return one_of({"0", "1", "2", "7", "16", "(-4)", "N", "M", "$N", "${M}"});
    const std::string a = expression(depth + 1), b = expression(depth + 1);
    switch (below(6)) {
      case 0:
        return "(" + a + ") " + one_of({"/", "%"}) + " (1 + (" + b + ") % 7 * ((" + b + ") % 7))";
      case 1:
        return "(" + a + ") " + one_of({"<<", ">>"}) + " " + one_of({"0", "1", "3"});
      case 2:
        return "(" + a + " ? " + b + " : " + expression(depth + 1) + ")";
      case 3:
        return one_of({"!", "~", "-"}) + "(" + a + ")";
      default:
        return a + " " + one_of({"+", "-", "*", "<", ">=", "==", "!=", "&&", "||", "&", "|", "^"}) + " " + b;
    }
  }

  std::string word(int depth) {
    const std::string v = name();
    switch (below(19)) {
      case 0:
        return "'" + one_of({"a", "x y", "[0]*3", "Et|L", "$A"}) + "'";
      case 1:
        return "\"" + one_of({"a", "x y", "1e-4", "\\$A"}) + "\"";
      case 2:
        return one_of({"a", "--x", "8", "k=v", "a/b.c", "x\\ y"});
      case 3:
        return "$" + v;
      case 4:
        return "\"$" + v + "\"";
      case 5:
        return "${" + v + ":-" + (depth < 2 ? word(depth + 1) : "z") + "}";
      case 6:
        return "\"${" + v + ":-" + one_of({"d e", "f", "\"g h\"", "$A"}) + "}\"";
      case 7:
        return "${U" + one_of({"0", "1"}) + "-" + one_of({"p q", "r"}) + "}";
      case 8:
        return "${" + v + ":+" + one_of({"s", "\"t u\""}) + "}";
      case 9:
        return "$((" + expression(0) + "))";
      case 10:
        return "\"pre$((" + expression(0) + "))post\"";
      case 11:
        return "\"${ARR[@]}\"";
      case 12:
        return "${ARR[@]}";
      case 13:
        return "p\"${ARR[@]}\"q";
      case 14:
        return "\"${ARR[*]}\"";
      case 15:
        return "${ARR[" + one_of({"0", "1", "N%2"}) + "]}";
      case 16:
        return "${#ARR[@]}${#A}";
      case 17:
        return "${" + v + one_of({"#", "##", "%", "%%"}) + one_of({"*", "a", "?", "*[0-9]"}) + "}";
      default:
        return "\"${" + v + one_of({"/a/Z", "//[0-9]/", ":1", ":0:2", ": -1", "^^"}) + "}\"";
    }
  }

  std::string condition() {
    const std::string v = "\"$" + name() + "\"";
    switch (below(7)) {
      case 0:
        return "[ -z " + v + " ]";
      case 1:
        return "[ -n " + v + " ]";
      case 2:
        return "[ " + v + " = " + one_of({"a", "\"\"", "\"$B\""}) + " ]";
      case 3:
        return "[ \"$N\" " + one_of({"-eq", "-ne", "-lt", "-gt"}) + " 8 ]";
      case 4:
        return "[[ $" + name() + " == " + one_of({"a*", "\"a*\"", "*b*", "?"}) + " ]]";
      case 5:
        return "(( " + expression(0) + " ))";
      default:
        return "[[ -n $A && ( $B != x || $D == --k ) ]]";
    }
  }

  std::string statement(int depth) {
    switch (below(depth < 2 ? 12 : 6)) {
      case 0:
        return one_of({"A", "B", "C", "D"}) + "=" + word(0);
      case 1:
        return one_of({"N", "M"}) + "=$(((" + expression(0) + ") % 100))";
      case 2:
        return "ARR=( " + word(0) + " " + word(0) + " )";
      case 3:
        return one_of({"A", "B"}) + "+=" + one_of({"z", "\"$C w\""});
      case 4:
        return condition() + " && A=yes || B=no";
      case 5:
        return "emit " + word(0) + " " + word(0) + " \\\n  " + word(0);
      case 6:
        return "if " + condition() + "; then\n" + statement(depth + 1) + "\nelif " + condition() + "; then " +
               statement(depth + 1) + "\nelse\n" + statement(depth + 1) + "\nfi";
      case 7:
        return "case " + word(0) + " in\n a|b*) " + statement(depth + 1) + " ;;\n \"x y\") " + statement(depth + 1) + ";;\n *) " +
               statement(depth + 1) + "\nesac";
      case 8:
        return "for X in " + word(0) + " b; do\n emit for $X\n" + statement(depth + 1) + "\ndone";
      case 9:
        return "for ((i=0;i<2;i++)); do emit c $i; " + statement(2) + "; done";
      case 10:
        return "f() { local Q=$1; A=\"$Q-$2\"; emit f \"$@\" $#; }\nf " + word(0) + " " + word(0);
      default:
        return "ARR+=(\n " + word(0) + " # a note\n)\neval \"emit $N e\"";
    }
  }
};

std::string of_bash(const std::string& script, bool& is_there, bool& complains) {
  const std::string file = testing::TempDir() + "tandem_shell_against_bash.sh";
  std::ofstream(file) << "set -f\nemit() { printf '<emit>'; for w in \"$@\"; do printf ' <%s>' \"$w\"; done; echo; }\n" << script;
  FILE* const pipe = popen(("env -i bash --norc " + file + " 2>&1 || echo COMPLAINS").c_str(), "r");
  std::string text;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  pclose(pipe);
  is_there = text.find("bash: not found") == std::string::npos && text.find("No such file") == std::string::npos;
  complains = text.find(file) != std::string::npos;  // a message
  if (const std::size_t end = text.find("COMPLAINS"); end != std::string::npos) text.resize(end);
  return text;
}

std::string followed(const std::string& script) {
  const shell::Evaluated evaluated = shell::evaluate_script(script, "s.sh", {});
  std::string text;
  for (const shell::Started& one : evaluated.started) {
    for (const shell::Text& word : one.words)
      text += (&word == one.words.data() ? "<" : " <") + evaluated.unknowns.readable(word.text) + ">";
    text += "\n";
  }
  return text;
}

TEST(ShellAgainstBash, TheSameWords) {
  int compared = 0;
  for (std::uint32_t seed = 1; seed <= 200; ++seed) {
    const std::string script = Generator(seed).script();
    bool is_there = true, complains = false;
    const std::string expected = of_bash(script, is_there, complains);
    if (!is_there) GTEST_SKIP() << "there is no bash";
    if (complains) continue;  // of what is wrong, each says in its own way
    ++compared;
    SCOPED_TRACE(script);
    ASSERT_NO_THROW(EXPECT_EQ(followed(script), expected)) << seed;
    if (HasFailure()) return;
  }
  EXPECT_GT(compared, 150);
}

}  // namespace
}  // namespace tandem::scenarios::shell_against_bash_test
