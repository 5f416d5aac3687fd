// Real processes on the loopback: they join, exchange bytes, agree, and leave.
#include "runtime/launch/control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/control_plane_fixture.h"

namespace tandem::control_plane_test {
namespace {

using namespace control_plane_fixture;
using testing::AllOf;
using testing::HasSubstr;

class ControlPlaneTest : public ControlPlaneFixture {};

TEST_F(ControlPlaneTest, CarriesBytesBothWays) {
  start_all(4, [](ControlPlane& plane, const Ready&) {
    const std::string id = plane.broadcast("from whoever is rank 0");
    plane.agree("DAG file", "the same");
    plane.barrier();
    std::string text = id + ":";
    for (const std::string& part : plane.gather(std::string(3, '\0') + "part")) text += std::to_string(part.size()) + ",";
    plane.leave();
    return text;
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Processes::Outcome outcome = processes_.outcome(rank);
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.text, std::string("from whoever is rank 0:") + (rank == 0 ? "7,7,7,7," : ""));
  }
}

TEST_F(ControlPlaneTest, BroadcastsRank0sBytesAndGathersByRank) {
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    start(rank, 3, [rank](ControlPlane& plane, const Ready&) {
      std::string text = plane.broadcast("rank " + std::to_string(rank));
      for (int round = 0; round < 50; ++round)
        for (const std::string& part : plane.gather(std::string(std::size_t{1} << 16, static_cast<char>('a' + rank))))
          text += part[round];
      plane.leave();
      return text;
    });
  }
  std::string gathered;
  for (int round = 0; round < 50; ++round) gathered += "abc";
  for (std::size_t rank = 0; rank < 3; ++rank) EXPECT_EQ(processes_.outcome(rank).text, "rank 0" + (rank == 0 ? gathered : ""));
}

TEST_F(ControlPlaneTest, ARunOfOneProcessOpensNoPort) {
  ControlPlane plane(Launch{});
  EXPECT_EQ(plane.broadcast("x"), "x");
  EXPECT_EQ(plane.gather("x"), std::vector<std::string>{"x"});
  plane.barrier();
  plane.agree("file", "x");
  plane.progress(3, true);
  plane.fail("x");
  plane.leave();
  EXPECT_EQ(plane.failure(), std::nullopt);
}

TEST_F(ControlPlaneTest, RunLeavesWithAll) {
  start_all(2, [](ControlPlane& plane, const Ready&) -> std::string {
    plane.run([&] { plane.barrier(); });
    return "left";
  });
  for (const std::size_t process : {0, 1}) EXPECT_EQ(processes_.outcome(process).text, "left");
}

TEST_F(ControlPlaneTest, ADifferentDigestEndsAll) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    start(rank, 4, [rank](ControlPlane& plane, const Ready&) -> std::string {
      plane.agree("scenario", "the same");
      plane.agree("DAG file", rank == 0 || rank == 2 ? "abc" : "abd");
      return "nothing happened";
    });
  }
  for (const std::size_t rank : {0, 1, 2, 3})
    expect_failure(rank, HasSubstr("ranks 1, 3 have another DAG file than rank 0, the first of them on " + host()));
}

TEST_F(ControlPlaneTest, DifferentOperationsEndAll) {
  start(0, 2, [](ControlPlane& plane, const Ready&) { return plane.broadcast("x"); });
  start(1, 2, [](ControlPlane& plane, const Ready&) { return std::to_string(plane.gather("x").size()); });
  for (const std::size_t rank : {0, 1}) expect_failure(rank, AllOf(HasSubstr("'broadcast'"), HasSubstr("'gather'")));
}

TEST_F(ControlPlaneTest, ServesManyMembersInOneThread) {
  constexpr std::uint32_t size = 64;
  std::vector<std::string> gathered;
  std::vector<std::thread> members;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    members.emplace_back([&, rank] {
      ControlPlane plane(launch(rank, size, port_), patient());
      plane.agree("DAG file", plane.broadcast("digest"));
      const std::vector<std::string> parts = plane.gather(std::to_string(rank));
      if (rank == 0) gathered = parts;
      plane.leave();
    });
  }
  for (std::thread& member : members) member.join();
  ASSERT_EQ(gathered.size(), size);
  for (std::uint32_t rank = 0; rank < size; ++rank) EXPECT_EQ(gathered[rank], std::to_string(rank));
}

}  // namespace
}  // namespace tandem::control_plane_test
