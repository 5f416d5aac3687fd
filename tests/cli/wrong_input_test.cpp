// Wrong input is refused with exit code 2 and one sentence that names the place and the remedy.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cli/run_command.h"
#include "tests/runtime/temporary_folder.h"

namespace tandem::cli::wrong_input_test {
namespace {

constexpr int failed = 1;
constexpr int wrong_input = 2;

/// A scenario file of this text; `words` must be in the sentence, which begins with the file.
struct WrongFile {
  std::string name;
  std::string text;
  std::vector<std::string> words;
};
void PrintTo(const WrongFile& wrong, std::ostream* out) { *out << wrong.name; }

class WrongFiles : public testing::TestWithParam<WrongFile> {};

TEST_P(WrongFiles, AreRefused) {
  const TemporaryFolder folder;
  const std::string file = folder / "s.yaml";
  std::ofstream(file) << GetParam().text;
  std::vector<std::string> words = GetParam().words;
  words.front() = "tandem: " + file + words.front();
  expect_refusal(run_tandem({"simulate", file, "--json", "-"}), wrong_input, words);
}

std::string scenario(const std::string& cluster, const std::string& parallelism, const std::string& training) {
  return "model: llama3-8b\ncluster: {preset: dgx-h100, " + cluster + "}\nparallelism: {" + parallelism + "}\ntraining: {" +
         training + "}\n";
}

const std::string batch = "sequence: 8192, global_batch: 64";

const WrongFile files[] = {
    {"Empty", "", {": is empty", "expected a scenario"}},
    {"OnlyAComment", "# nothing\n", {":", "expected a mapping"}},
    {"NoYaml", "model: [llama3-8b\ncluster: }\n", {":2:"}},
    {"BareList", "- model\n- cluster\n", {":1:1", "expected a mapping with model, cluster and training"}},
    {"CyclicAlias", "model: &a\n  layers: *a\n", {":2:11", "alias lies inside the value"}},
    {"Missing", "model: llama3-8b\n", {":1:1", "cluster is missing", "expected a scenario with"}},
    {"TooManyGpus", scenario("gpus: 1000000000000", "tp: 1", batch), {":2:", "`1000000000000`", "to 1,048,576"}},
    {"NegativeSize", scenario("gpus: 8", "tp: 1", "sequence: -8192, global_batch: 8"), {":4:", "`-8192`", "from 1 to"}},
    {"UnknownKey", scenario("gpus: 8", "tpp: 1", batch), {":3:15", "no field `tpp`", "did you mean `tp`?"}},
    {"UnknownPreset",
     "model: llama3-9b\ncluster: {preset: dgx-h100, gpus: 8}\ntraining: {" + batch + "}\n",
     {":1:8", "no model preset `llama3-9b`", "did you mean `llama3-8b`?"}},
    {"WrongType", scenario("gpus: 8", "tp: [1]", batch), {":3:19", "parallelism.tp is a list", "expected a whole number"}},
    {"HeadsDoNotDivide",
     scenario("gpus: 9", "tp: 3", batch),
     {":3:19", "tp 3 does not divide 32 heads", "nearest that do: 2, 4"}},
    {"ImpossibleMesh",
     scenario("gpus: 64", "tp: 8, pp: 2, dp: 3", batch),
     {":3:", "makes 48 ranks for 64 GPUs", "expected dp 4"}},
    {"BatchDoesNotDivide",
     scenario("gpus: 8", "dp: 8", "sequence: 8192, global_batch: 63"),
     {":4:", "global_batch 63", "56, 64"}},
};
INSTANTIATE_TEST_SUITE_P(Texts, WrongFiles, testing::ValuesIn(files), [](const auto& test) { return test.param.name; });

/// A command line, and what the sentence must hold.
struct WrongCommand {
  std::string name;
  std::vector<std::string> arguments;
  std::vector<std::string> words;
  int exit_code = wrong_input;
};
void PrintTo(const WrongCommand& wrong, std::ostream* out) { *out << wrong.name; }

class WrongCommands : public testing::TestWithParam<WrongCommand> {};

TEST_P(WrongCommands, AreRefused) { expect_refusal(run_tandem(GetParam().arguments), GetParam().exit_code, GetParam().words); }

const std::string tiny = scenario_file("tiny-host");

const WrongCommand scenarios[] = {
    {"MissingFile",
     {"simulate", scenario_file("tiny-hots")},
     {"tiny-hots.yaml: cannot be read", "did you mean `", "tiny-host.yaml`?"}},
    {"BinaryFile", {"simulate", "/bin/ls"}, {"/bin/ls: byte ", "not UTF-8 text, expected a scenario in YAML"}},
    {"Folder", {"simulate", TANDEM_SOURCE_DIR}, {"is a folder, expected a scenario in YAML"}},
    {"EndlessFile", {"simulate", "/dev/zero"}, {"/dev/zero: ", "expected a scenario in YAML"}},
    {"EmptyPath", {"simulate", ""}, {"empty", "expected a path"}},
    {"LineBreakInPath", {"simulate", "no\nsuch.yaml"}, {"no?such.yaml: cannot be read"}},
    {"TooManyRanksToExecute", {"execute", scenario_file("llama3-70b-512"), "--backend", "host"}, {"512 ranks", "at most 64"}},
    {"TooManyRanksToCrosscheck",
     {"crosscheck", scenario_file("llama3-70b-512"), "--backend", "host"},
     {"512 ranks", "at most 64"}},
};
INSTANTIATE_TEST_SUITE_P(Scenarios, WrongCommands, testing::ValuesIn(scenarios),
                         [](const auto& test) { return test.param.name; });

const WrongCommand overrides[] = {
    {"BadPath", {"simulate", tiny, "--set", "paralelism.tp=2"}, {"--set paralelism.tp=2: ", "did you mean `parallelism`?"}},
    {"NoEqualsSign", {"simulate", tiny, "--set", "parallelism.tp"}, {"--set parallelism.tp: expected --set path=value"}},
    {"NoPath", {"simulate", tiny, "--set", "=2"}, {"--set =2: ", "expected"}},
    {"NoValue", {"simulate", tiny, "--set"}, {"--set", "see tandem simulate --help"}},
    {"BadValue", {"simulate", tiny, "--set", "parallelism.tp=3"}, {"--set parallelism.tp=3: ", "nearest that do: 2, 4"}},
    {"BadYaml", {"simulate", tiny, "--set", "parallelism.tp=]"}, {"--set parallelism.tp=]"}},
};
INSTANTIATE_TEST_SUITE_P(Overrides, WrongCommands, testing::ValuesIn(overrides),
                         [](const auto& test) { return test.param.name; });

const WrongCommand usage[] = {
    {"NoArguments", {}, {"a subcommand is missing; expected one of: simulate, "}},
    {"UnknownSubcommand", {"simulat", tiny}, {"no subcommand `simulat`; did you mean `simulate`?"}},
    {"FarFromAnySubcommand", {"frobnicate"}, {"no subcommand `frobnicate`; expected one of: simulate, "}},
    {"NoScenario", {"simulate"}, {"scenario is required; see tandem simulate --help"}},
    {"UnknownOption", {"simulate", tiny, "--no-fol"}, {"no option `--no-fol`; did you mean `--no-fold`?"}},
    {"OptionBeforeSubcommand", {"--frobnicate", "simulate", tiny}, {"no option `--frobnicate`; expected one of: --help"}},
    {"OptionOfAnother", {"simulate", tiny, "--verify"}, {"no option `--verify`; expected one of: --help"}},
    {"OneArgumentTooMany", {"simulate", tiny, "more"}, {"one argument too many: `more`; see tandem simulate --help"}},
    {"JsonTwice", {"simulate", tiny, "--json", "-", "--json", "-"}, {"--json", "see tandem simulate --help"}},
    {"JsonWithoutPath", {"simulate", tiny, "--json", ""}, {"--json", "empty", "expected a path"}},
    {"ReportOnStandardOutput", {"simulate", tiny, "--report", "-"}, {"--report: ", "standard output, expected a file"}},
    {"ReportOfNoPath", {"report", ""}, {"file: ", "empty", "expected a path"}},
    {"ExportOfNoPath", {"export", "", "--to", "nccl"}, {"scenario: ", "empty", "expected a path"}},
    {"ExportToNoPath", {"export", tiny, "--to", "nccl", "--out", ""}, {"--out: ", "empty", "expected a path"}},
    {"ImportOfNoPath", {"import", "", "--from", "megatron"}, {"file: ", "empty", "expected a path"}},
    {"RanksWithoutTrace", {"simulate", tiny, "--trace-ranks", "0"}, {"--trace-ranks requires --trace"}},
    {"NoRanks", {"simulate", tiny, "--trace", "/dev/null", "--trace-ranks", ""}, {"--trace-ranks", "empty", "such as 0,5,16-31"}},
    {"UnknownRank",
     {"simulate", tiny, "--trace", "/dev/null", "--trace-ranks", "0,8"},
     {"--trace-ranks: ", "no rank 8", "from 0 to 7"}},
    {"UnknownRankToExecute",
     {"execute", tiny, "--backend", "host", "--trace", "/dev/null", "--trace-ranks", "8"},
     {"--trace-ranks: ", "no rank 8", "from 0 to 7"}},
    {"UnknownRankToCrosscheck",
     {"crosscheck", tiny, "--backend", "host", "--trace", "/dev/null", "--trace-ranks", "8"},
     {"--trace-ranks: ", "no rank 8", "from 0 to 7"}},
    {"UnknownCollectives",
     {"simulate", tiny, "--collectives", "chunks"},
     {"--collectives: chunks", "fluid", "steps", "see tandem simulate --help"}},
    {"PoliciesInSteps",
     {"simulate", scenario_file("llama3-8b-64"), "--collectives", "steps", "--set", "parallelism.zero=0", "--set",
      "training.sync={kind: asynchronous}"},
     {"--collectives steps: ", "training.sync plays replicas by collectives as wholes; expected --collectives fluid"}},
    {"NegativeSeed", {"place", tiny, "--seed", "-1"}, {"--seed: is negative, expected a whole number"}},
    {"NoBackend", {"execute", tiny}, {"--backend is required; see tandem execute --help"}},
    {"UnknownBackend", {"execute", tiny, "--backend", "tpu"}, {"--backend: tpu", "host", "cuda", "see tandem execute --help"}},
};
INSTANTIATE_TEST_SUITE_P(Usage, WrongCommands, testing::ValuesIn(usage), [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace tandem::cli::wrong_input_test
