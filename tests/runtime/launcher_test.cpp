#include "runtime/launch/launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace tandem::launcher_test {
namespace {

using testing::HasSubstr;

std::string text(const Launch& launch) {
  return std::to_string(launch.rank) + "/" + std::to_string(launch.size) + " local " + std::to_string(launch.local_rank) +
         " at " + launch.host + ":" + std::to_string(launch.port) + " '" + launch.session + "'";
}

std::string sentence_for(const Environment& environment) {
  try {
    return "no error: " + text(launch_from(environment));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

Environment with(Environment environment, const Environment& changes) {
  for (const auto& [name, value] : changes) environment.insert_or_assign(name, value);
  return environment;
}

const Environment torchrun{{"RANK", "5"},           {"WORLD_SIZE", "16"},     {"LOCAL_RANK", "1"},
                           {"MASTER_ADDR", "head"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_RUN_ID", "run 7"}};
const Environment open_mpi{{"OMPI_COMM_WORLD_RANK", "3"},
                           {"OMPI_COMM_WORLD_SIZE", "4"},
                           {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                           {"MASTER_ADDR", "head"},
                           {"MASTER_PORT", "1234"}};
const Environment pmi{
    {"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "0"}, {"MASTER_ADDR", "::1"}, {"MASTER_PORT", "1234"}};
const Environment slurm{{"SLURM_PROCID", "9"},  {"SLURM_NTASKS", "16"},         {"SLURM_LOCALID", "1"},
                        {"SLURM_JOB_ID", "42"}, {"SLURM_NODELIST", "gpu[1-9]"}, {"SLURM_STEP_ID", "3"}};

TEST(Launcher, NothingSetIsARunAlone) { EXPECT_EQ(text(launch_from({})), "0/1 local 0 at 127.0.0.1:0 ''"); }

TEST(Launcher, ReadsEachLaunchersVariables) {
  EXPECT_EQ(text(launch_from(torchrun)), "5/16 local 1 at head:29500 'run 7'");
  EXPECT_EQ(text(launch_from(open_mpi)), "3/4 local 3 at head:1234 ''");
  EXPECT_EQ(text(launch_from(pmi)), "2/4 local 0 at ::1:1234 ''");
  EXPECT_EQ(text(launch_from(slurm)), "9/16 local 1 at gpu1:10045 '42.3'");  // 10000 + job 42 + step 3
}

TEST(Launcher, PortsThatAreGivenGoBeforeThoseDerived) {
  EXPECT_EQ(launch_from(with(slurm, {{"MASTER_PORT", "77"}})).port, 77);
  EXPECT_EQ(launch_from(with(slurm, {{"MASTER_PORT", "77"}, {"TANDEM_PORT", "78"}})).port, 78);
  EXPECT_EQ(launch_from(with(slurm, {{"MASTER_ADDR", "other"}})).host, "other");
  EXPECT_EQ(launch_from(with(slurm, {{"SLURM_JOB_ID", "20042"}})).port, 10045);
}

TEST(Launcher, LeavesTorchrunsOwnStoreItsPort) {
  const Environment store = with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(launch_from(store).port, 29501);
  EXPECT_EQ(launch_from(with(store, {{"MASTER_PORT", "65535"}})).port, 65534);
  EXPECT_EQ(launch_from(with(store, {{"TANDEM_PORT", "40"}})).port, 40);
  EXPECT_EQ(launch_from(with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "False"}})).port, 29500);
}

TEST(Launcher, InAStepTheStepsVariablesCount) {
  const Environment step =
      with(slurm, {{"SLURM_STEP_NUM_TASKS", "12"}, {"SLURM_STEP_NODELIST", "gpu[5-9]"}, {"SLURM_JOB_NODELIST", "gpu[4-9]"}});
  EXPECT_EQ(launch_from(step).size, 12U);
  EXPECT_EQ(launch_from(step).host, "gpu5");
  EXPECT_EQ(launch_from(with(slurm, {{"SLURM_JOB_NODELIST", "gpu[4-9]"}})).host, "gpu4");
}

TEST(Launcher, OneProcessNeedsNoAddress) {
  EXPECT_EQ(launch_from({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).size, 1U);
  EXPECT_EQ(launch_from({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}).size, 1U);
  EXPECT_EQ(launch_from({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"SLURM_STEP_ID", "0"}}).size, 1U);
}

TEST(Launcher, ABatchScriptRunsAlone) {
  EXPECT_EQ(launch_from({{"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "42"}}).size, 1U);
  EXPECT_EQ(launch_from({{"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "42"}}).size, 1U);  // the shell of salloc
  const Environment script{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}};
  EXPECT_THAT(sentence_for(script), testing::AllOf(HasSubstr("SLURM_NTASKS is '8'"), HasSubstr("start it with srun")));
  EXPECT_EQ(launch_from(with(script, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})).size, 1U);
}

TEST(Launcher, LaunchersUnderLaunchers) {
  const Environment torchrun_under_srun = with(torchrun, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(launch_from(torchrun_under_srun).rank, 5U);
  const Environment mpirun_in_a_job = with(open_mpi, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(launch_from(mpirun_in_a_job).rank, 3U);
  const Environment mpiexec_in_a_job = with(pmi, {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "2"}, {"SLURM_STEP_ID", "0"}});
  EXPECT_EQ(launch_from(mpiexec_in_a_job).rank, 2U);
  const Environment srun_with_pmi = with(slurm, {{"PMI_RANK", "9"}, {"PMI_SIZE", "16"}});
  EXPECT_EQ(launch_from(srun_with_pmi).host, "gpu1");
}

TEST(Launcher, LimitsAreThoseOfTheEnvironment) {
  EXPECT_EQ(launch_from(torchrun).limits.join, LaunchLimits{}.join);
  const Launch launch = launch_from(
      with(torchrun, {{"TANDEM_JOIN_TIMEOUT", "600"}, {"TANDEM_STALL_TIMEOUT", "90"}, {"TANDEM_SILENCE_TIMEOUT", "45"}}));
  EXPECT_EQ(launch.limits.join, 600);
  EXPECT_EQ(launch.limits.stall, 90);
  EXPECT_EQ(launch.limits.silence, 45);
}

struct WrongCase {
  Environment environment;
  std::vector<std::string> words;
};

TEST(Launcher, SaysWhatIsWrongAndWhatToDo) {
  Environment no_size = torchrun, no_local = torchrun, no_host = torchrun, no_port = torchrun, no_rank = open_mpi;
  no_size.erase("WORLD_SIZE");
  no_local.erase("LOCAL_RANK");
  no_host.erase("MASTER_ADDR");
  no_port.erase("MASTER_PORT");
  no_rank.erase("OMPI_COMM_WORLD_RANK");
  Environment mpi_without_host = open_mpi, pmi_without_port = pmi, no_nodes = slurm, no_job = slurm, by_hand = torchrun;
  mpi_without_host.erase("MASTER_ADDR");
  pmi_without_port.erase("MASTER_PORT");
  no_nodes.erase("SLURM_NODELIST");
  no_job.erase("SLURM_JOB_ID");
  by_hand.erase("TORCHELASTIC_RUN_ID");
  const std::vector<WrongCase> cases{
      {no_size, {"WORLD_SIZE is not set although RANK is '5'", "torchrun"}},
      {no_local, {"LOCAL_RANK is not set although RANK is '5'"}},
      {no_host, {"MASTER_ADDR is not set although WORLD_SIZE is 16", "set it to the machine of rank 0"}},
      {no_port, {"MASTER_PORT is not set although WORLD_SIZE is 16", "free port"}},
      {no_rank, {"OMPI_COMM_WORLD_RANK is not set although OMPI_COMM_WORLD_SIZE is '4'", "mpirun"}},
      {mpi_without_host, {"MASTER_ADDR is not set although OMPI_COMM_WORLD_SIZE is 4"}},
      {pmi_without_port, {"MASTER_PORT is not set although PMI_SIZE is 4"}},
      {no_nodes, {"SLURM_STEP_NODELIST is not set", "MASTER_ADDR"}},
      {no_job, {"SLURM_JOB_ID is not set", "MASTER_PORT"}},
      {with(torchrun, {{"RANK", "16"}}), {"RANK is 16 although WORLD_SIZE is 16", "from 0 to 15"}},
      {with(torchrun, {{"RANK", "-1"}}), {"RANK is '-1', expected a whole number from 0"}},
      {with(torchrun, {{"RANK", "1x"}}), {"RANK is '1x', expected a whole number"}},
      {with(torchrun, {{"RANK", ""}}), {"RANK is '', expected a whole number"}},
      {with(torchrun, {{"WORLD_SIZE", "0"}}), {"WORLD_SIZE is '0', expected a whole number from 1"}},
      {with(torchrun, {{"WORLD_SIZE", "99999999999"}}), {"WORLD_SIZE is '99999999999'"}},
      {with(torchrun, {{"LOCAL_RANK", "one"}}), {"LOCAL_RANK is 'one'"}},
      {with(torchrun, {{"MASTER_PORT", "65536"}}), {"MASTER_PORT is '65536', expected a whole number from 1 to 65535"}},
      {with(torchrun, {{"MASTER_ADDR", ""}}), {"MASTER_ADDR is not set"}},
      {with(torchrun, {{"TANDEM_SILENCE_TIMEOUT", "1"}}), {"TANDEM_SILENCE_TIMEOUT is '1'", "from 2 to 604800"}},
      {with(slurm, {{"SLURM_NODELIST", "gpu["}}), {"SLURM_NODELIST is 'gpu['", "MASTER_ADDR"}},
      {with(by_hand, open_mpi), {"RANK is 5 of WORLD_SIZE 16, but OMPI_COMM_WORLD_RANK is 3 of OMPI_COMM_WORLD_SIZE 4", "unset"}},
      {with(by_hand, slurm), {"RANK is 5 of WORLD_SIZE 16, but SLURM_PROCID is 9 of SLURM_NTASKS 16", "unset"}},
  };
  for (const WrongCase& wrong : cases) {
    const std::string sentence = sentence_for(wrong.environment);
    for (const std::string& words : wrong.words) EXPECT_THAT(sentence, HasSubstr(words));
    EXPECT_EQ(sentence.find('\n'), std::string::npos);
  }
}

TEST(FirstHost, OfListsAsSlurmWritesThem) {
  const std::vector<std::pair<std::string, std::string>> lists{
      {"node", "node"},          {"node1,node2", "node1"},     {"node[003-010,12]", "node003"},
      {"node[7]", "node7"},      {"n[09-10]-ib,x", "n09-ib"},  {"rack[1-2]n[3,5]", "rack1n3"},
      {"a.b.c,d[1-2]", "a.b.c"}, {"gpu-a[1-2]b,c", "gpu-a1b"},
  };
  for (const auto& [list, first] : lists) EXPECT_EQ(first_host(list), first) << list;
  for (const char* list : {"", ",", "node[", "node[1-2", "node[]", "node[x]", "node]", "a b", "(null)"})
    EXPECT_THROW(first_host(list), std::invalid_argument) << list;
}

TEST(ProcessEnvironment, HoldsWhatIsSet) {
  ::setenv("TANDEM_TEST_VARIABLE", "a=b", 1);
  EXPECT_EQ(process_environment()["TANDEM_TEST_VARIABLE"], "a=b");
  ::unsetenv("TANDEM_TEST_VARIABLE");
  EXPECT_FALSE(process_environment().contains("TANDEM_TEST_VARIABLE"));
}

}  // namespace
}  // namespace tandem::launcher_test
