#include "cli/flags/shown_streams.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "cli/records/elastic_error.h"

namespace phalanx::cli {
namespace {

using wire::Stream;

std::string shown(std::string_view text) {
  base::Result<ShownStreams> streams = parse_shown_streams(text);
  if (!streams.ok()) return "error";
  std::string out;
  for (int rank : {0, 1, 2}) {
    out += streams->shows(rank, Stream::kStdout) ? "o" : "-";
    out += streams->shows(rank, Stream::kStderr) ? "e " : "- ";
  }
  return out + (streams->all() ? "all" : "");
}

TEST(ShownStreams, AsTorchrunWritesThem) {
  EXPECT_EQ(shown("3"), "oe oe oe all");
  EXPECT_EQ(shown("0"), "-- -- -- ");
  EXPECT_EQ(shown("1"), "o- o- o- ");
  EXPECT_EQ(shown("0,0:3"), "oe -- -- ");
  EXPECT_EQ(shown("1:2,2:0"), "oe -e -- ");
  EXPECT_EQ(shown("2,1:1"), "-e o- -e ");
}

TEST(ShownStreams, WhatIsNotOneIsRefused) {
  for (const char* text : {"", "4", "-1", "x", "0:", ":3", "0:4", "0,1", "0:1,0:2", "0,,", "9999:1", "0:1:2", "18446744073709551616:1"})
    EXPECT_EQ(shown(text), "error") << text;
}

// torch/distributed/elastic/multiprocessing/errors/error_handler.py, override_error_code_in_rootcause_data.
TEST(ElasticError, IsTheRanksOwnWithItsExitCode) {
  const std::string own = R"({"message":{"message":"ValueError: x","extraInfo":{"py_callstack":"…","timestamp":"1699999999"}}})";
  base::Result<base::Json> json = base::parse_json(elastic_error(own, "rank 1 exited with code 3", 3, 1));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["message"]["message"], "ValueError: x");
  EXPECT_EQ((*json)["message"]["extraInfo"]["timestamp"], "1699999999");
  EXPECT_EQ((*json)["message"]["errorCode"], 3);
  json = base::parse_json(elastic_error(R"({"message":"plain","timestamp":1})", "", 3, 1));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ((*json)["message"], "plain");
}

TEST(ElasticError, SaysTheVerdictWhereTheRankLeftNothingToRead) {
  for (const char* left : {"", "no json", "[1]", "{}", "{\"other\":1}", "3"}) {
    base::Result<base::Json> json = base::parse_json(elastic_error(left, "rank 1 on gpu02 exited with code 3", 3, 1'700'000'000));
    ASSERT_TRUE(json.ok()) << left;
    EXPECT_EQ((*json)["message"]["message"], "rank 1 on gpu02 exited with code 3") << left;
    EXPECT_EQ((*json)["message"]["extraInfo"]["timestamp"], "1700000000") << left;
    EXPECT_EQ((*json)["message"]["errorCode"], 3) << left;
  }
}

}  // namespace
}  // namespace phalanx::cli
