#include "runtime/launch/secret.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/temporary_folder.h"

namespace tandem::secret_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Secret : public testing::Test {
 protected:
  TemporaryFolder folder_;

  std::string file(const std::string& text, mode_t mode = S_IRUSR | S_IWUSR) {
    std::string path = folder_ / "given";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  static std::string sentence_for(const Environment& environment) {
    try {
      return "no error: " + secret_from(environment);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
  }
};

TEST_F(Secret, IsTheOneGivenFirst) {
  const std::string path = file("from a file, long enough\n");
  EXPECT_EQ(secret_from({{"TANDEM_SECRET_FILE", path}}), "from a file, long enough");
  EXPECT_EQ(secret_from({{"TANDEM_SECRET", "given itself, long enough"}, {"TANDEM_SECRET_FILE", path}}),
            "given itself, long enough");
}

TEST_F(Secret, MayComeThroughAnInheritedDescriptor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const std::string secret = "whispered by the launcher";
  ASSERT_EQ(::write(ends[1], secret.data(), secret.size()), static_cast<ssize_t>(secret.size()));
  ::close(ends[1]);
  EXPECT_EQ(secret_from({{"TANDEM_SECRET_FILE", "/dev/fd/" + std::to_string(ends[0])}}), secret);
  ::close(ends[0]);
}

TEST_F(Secret, ThatIsNoneSaysWhatToDo) {
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET", "short"}}),
              AllOf(HasSubstr("TANDEM_SECRET holds a secret of 5 characters, expected 16 to 4096"), HasSubstr("openssl rand")));
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET", ""}}), HasSubstr("a secret of 0 characters"));
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET", std::string(4097, 'x')}}), HasSubstr("of more than 4096 characters"));
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET_FILE", folder_ / "none"}}),
              HasSubstr("/none, the file of the secret, cannot be opened"));
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET_FILE", file("a secret of many, many letters", 0640)}}),
              AllOf(HasSubstr("may be read or written by others"), HasSubstr("chmod 600 ")));
  EXPECT_THAT(sentence_for({{"TANDEM_SECRET_FILE", "/dev/zero"}}), HasSubstr("/dev/zero is no file"));
  EXPECT_THAT(sentence_for({}), AllOf(HasSubstr("HOME is not set"), HasSubstr("set TANDEM_SECRET")));
  EXPECT_THAT(sentence_for({{"HOME", "/proc/nowhere"}}),
              AllOf(HasSubstr("cannot be written to /proc/nowhere/.config/tandem/secret"), HasSubstr("set TANDEM_SECRET")));
  for (const std::string& sentence :
       {sentence_for({{"TANDEM_SECRET", "hidden!"}}), sentence_for({{"TANDEM_SECRET_FILE", file("hidden!")}})})
    EXPECT_THAT(sentence, testing::Not(HasSubstr("hidden!")));
}

TEST_F(Secret, OfTheUserIsDrawnOnceAndHisAlone) {
  const Environment home{{"HOME", folder_ / "home"}};
  std::vector<std::string> secrets(16);
  std::vector<std::thread> processes;
  for (std::string& secret : secrets) processes.emplace_back([&] { secret = secret_from(home); });
  for (std::thread& process : processes) process.join();
  EXPECT_EQ(std::set<std::string>(secrets.begin(), secrets.end()).size(), 1U);
  EXPECT_EQ(secrets[0].size(), 64U);
  EXPECT_EQ(secret_from(home), secrets[0]);

  const std::string path = folder_ / "home/.config/tandem/secret";
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, mode_t{S_IRUSR | S_IWUSR});
  const std::filesystem::directory_iterator files(folder_ / "home/.config/tandem");
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "a draft is left";

  EXPECT_NE(secret_from({{"XDG_CONFIG_HOME", folder_ / "another"}, {"HOME", folder_ / "home"}}), secrets[0]);
  ::chmod(path.c_str(), 0644);
  EXPECT_THAT(sentence_for(home), HasSubstr("may be read or written by others"));
}

TEST_F(Secret, IsNotAskedOfAProcessAlone) {
  for (const char* name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}) ASSERT_EQ(std::getenv(name), nullptr);
  EXPECT_EQ(launch_of_this_process().secret, "");
}

}  // namespace
}  // namespace tandem::secret_test
