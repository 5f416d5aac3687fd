// Shards of a study are disjoint and complete, and may fill one file at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>

#include "tests/cli/json_result.h"
#include "tests/cli/study.h"

namespace tandem::cli::sweep_shards_test {
namespace {

using testing::HasSubstr;

constexpr int done = 0;
const std::string study = tiny_study("grid: {parallelism.dp: [1, 2, 4, 8], training.micro_batch: [1, 2]}\n");

std::set<std::string> hashes_of(const std::string& database) {
  std::set<std::string> hashes;
  for (const auto& [hash, row] : rows_of(database)) hashes.insert(hash);
  return hashes;
}

TEST(SweepShards, AreDisjointAndComplete) {
  const StudyFolder folder(study);
  std::set<std::string> together;
  const std::vector<std::vector<std::string>> expected = {{"0", "3", "6"}, {"1", "4", "7"}, {"2", "5"}};
  for (const std::size_t i : {0U, 1U, 2U}) {
    const std::string database = folder / (std::to_string(i) + ".sqlite");
    const CommandResult run = run_tandem({"sweep", folder.study(), "--out", database, "--shard", std::to_string(i) + "/3"});
    ASSERT_EQ(run.exit_code, done) << run.err;
    EXPECT_EQ(column_of(database, "point"), expected[i]);
    for (const std::string& hash : hashes_of(database)) EXPECT_TRUE(together.insert(hash).second);
  }
  ASSERT_EQ(folder.sweep().exit_code, done);
  EXPECT_EQ(together, hashes_of(folder.database()));
}

TEST(SweepShards, OfWhichThereAreMoreThanPointsDoNothing) {
  const StudyFolder folder(study);
  const CommandResult run = folder.sweep({"--shard", "8/9"});
  EXPECT_EQ(run.exit_code, done) << run.err;
  EXPECT_THAT(run.out, HasSubstr("0 points; 0 of them from before"));
}

TEST(SweepShards, FillOneFileTogether) {
  const StudyFolder folder(study);
  std::vector<std::future<CommandResult>> runs;
  for (const char* shard : {"0/4", "1/4", "2/4", "3/4"})
    runs.push_back(std::async(std::launch::async, [&folder, shard] { return folder.sweep({"--shard", shard, "--jobs", "2"}); }));
  for (auto& run : runs) {
    const CommandResult result = run.get();
    EXPECT_EQ(result.exit_code, done) << result.err;
    EXPECT_THAT(result.out, HasSubstr("2 points, 2 done"));
  }
  const CommandResult whole = folder.sweep();
  EXPECT_THAT(whole.out, HasSubstr("8 points, 8 done; 8 of them from before"));
}

TEST(SweepShards, ThatAreTheSameShareTheirResults) {
  const StudyFolder folder(study);
  auto other = std::async(std::launch::async, [&] { return folder.sweep({"--jobs", "2"}); });
  for (const CommandResult& result : {folder.sweep({"--jobs", "2"}), other.get()}) {
    EXPECT_EQ(result.exit_code, done) << result.err;
    EXPECT_THAT(result.out, HasSubstr("8 points, 8 done"));
  }
  EXPECT_EQ(rows_of(folder.database()).size(), 8U);
}

TEST(SweepShards, OfFilesOfTheirOwnMergeInSqlite) {
  const StudyFolder folder(study);
  ASSERT_EQ(folder.sweep({"--shard", "0/2"}).exit_code, done);
  ASSERT_EQ(run_tandem({"sweep", folder.study(), "--out", folder / "1.sqlite", "--shard", "1/2"}).exit_code, done);
  execute_sql(folder.database(),
              "ATTACH '" + (folder / "1.sqlite") + "' AS shard; INSERT OR IGNORE INTO points SELECT * FROM shard.points");
  EXPECT_THAT(folder.sweep().out, HasSubstr("8 points, 8 done; 8 of them from before"));
}

TEST(SweepShards, RunUnderGnuParallel) {
  if (std::system("parallel --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "GNU parallel is not installed";
  const StudyFolder folder(study);
  const std::string command = "parallel --will-cite -j 2 " TANDEM_BINARY " sweep " + folder.study() + " --out " +
                              folder.database() + " --shard {}/2 --jobs 1 ::: 0 1 > " + (folder / "out") + " 2>&1";
  ASSERT_EQ(std::system(command.c_str()), 0) << read_all(folder / "out");
  EXPECT_EQ(column_of(folder.database(), "status"), std::vector<std::string>(8, "done"));
  EXPECT_THAT(read_all(folder / "out"), HasSubstr("4 points, 4 done; 0 of them from before"));
}

}  // namespace
}  // namespace tandem::cli::sweep_shards_test
