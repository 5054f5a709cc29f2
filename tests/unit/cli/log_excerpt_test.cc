#include "cli/records/log_excerpt.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "logs/redact.h"
#include "os/files.h"
#include "scratch.h"

namespace phalanx::cli {
namespace {

class LogExcerpt : public testing::Test {
 protected:
  std::string excerpt(const std::string& text, size_t most) {
    EXPECT_TRUE(os::write_file_atomic(path_, text).ok());
    return excerpt_of(folder_, "0.log", most).value();
  }
  std::string folder_ = scratch::folder("excerpt"), path_ = folder_ + "/0.log";
};

TEST_F(LogExcerpt, AShortOneIsWhole) { EXPECT_EQ(excerpt("a\nb without an end", 100), "a\nb without an end"); }

TEST_F(LogExcerpt, ALogThatWasTurnedIsReadFromTheFileBeforeItOn) {
  ASSERT_TRUE(os::write_file_atomic(path_ + ".1", "older\n").ok());
  EXPECT_EQ(excerpt("[phalanx: the earlier part of this log is in 0.log.1]\nnewer\n", 100),
            "older\n[phalanx: the earlier part of this log is in 0.log.1]\nnewer\n");
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += fmt::format("line {}\n", i);
  for (size_t cut = 0; cut < lines.size(); cut += 97) {
    ASSERT_TRUE(os::write_file_atomic(path_ + ".1", lines.substr(0, cut)).ok());
    std::string cut_out = excerpt(lines.substr(cut), 400);
    EXPECT_EQ(cut_out.substr(0, 7), "line 0\n");
    EXPECT_TRUE(cut_out.ends_with("line 98\nline 99\n")) << cut_out;
    EXPECT_NE(cut_out.find(" omitted]\n"), std::string::npos);
    EXPECT_LT(cut_out.size(), 450U);
  }
}

// A key that the turn of the log has cut in two: neither half could be recognized alone.
TEST_F(LogExcerpt, AKeyAcrossTwoFilesIsFound) {
  std::string key = "-----BEGIN PRIVATE KEY-----\n";
  for (int i = 0; i < 20; ++i) key += "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n";
  key += "-----END PRIVATE KEY-----\n";
  ASSERT_TRUE(os::write_file_atomic(path_ + ".1", "begins\n" + key.substr(0, 400)).ok());
  std::string given_away = logs::redact(excerpt(key.substr(400) + "ends\n", 100'000));
  EXPECT_EQ(given_away.find("AoIBAQC7"), std::string::npos) << given_away;
  EXPECT_NE(given_away.find("ends"), std::string::npos);
}

// Wherever the cuts fall, no piece of a secret is left that redact() cannot recognize.
TEST_F(LogExcerpt, NoSecretIsCutApartFromItsName) {
  std::string text;
  for (int i = 0; i < 200; ++i) text += fmt::format("step {} DB_PASSWORD=sEcRet{}sEcRetsEcRetsEcRetsEcRet loss 2.5\n", i, i);
  for (size_t most = 64; most < 2000; most += 7) {
    std::string given_away = logs::redact(excerpt(text, most));
    ASSERT_EQ(given_away.find("cRet"), std::string::npos) << most << ": " << given_away;
    ASSERT_NE(given_away.find(" omitted]\n"), std::string::npos);
  }
}

TEST_F(LogExcerpt, NoPartOfAPrivateKeyIsLeft) {
  std::string text = "begins\n-----BEGIN PRIVATE KEY-----\n";
  for (int i = 0; i < 100; ++i) text += "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n";
  text += "-----END PRIVATE KEY-----\nends\n";
  for (size_t most = 64; most < text.size(); most += 13) {
    std::string given_away = logs::redact(excerpt(text, most));
    ASSERT_EQ(given_away.find("MII"), std::string::npos) << most << ": " << given_away;
    ASSERT_NE(given_away.find("ends\n"), std::string::npos) << most;
  }
}

TEST_F(LogExcerpt, OfNoRegularFileThereIsNone) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(*excerpt_of(folder_, "0.log", 100), "");
  EXPECT_EQ(*excerpt_of(folder_ + "/..", folder_.substr(folder_.rfind('/') + 1), 100), "");
}

// In a shared folder of logs, `ranks` may be somebody's link to a folder of ours that has a 0.log.
TEST_F(LogExcerpt, NoStepOfTheWayIsALink) {
  const std::string run = scratch::folder("run");
  for (const char* name : {"/private", "/real"}) ASSERT_TRUE(os::make_folders(run + name).ok());
  ASSERT_TRUE(os::write_file_atomic(run + "/private/0.log", "secret").ok());
  ASSERT_EQ(::symlink((run + "/private").c_str(), (run + "/ranks").c_str()), 0);
  ASSERT_EQ(::symlink((run + "/private").c_str(), (run + "/linked").c_str()), 0);
  ASSERT_EQ(::symlink((run + "/private/0.log").c_str(), (run + "/real/0.log").c_str()), 0);
  EXPECT_EQ(*excerpt_of(run, "private/0.log", 100), "secret");
  EXPECT_EQ(*excerpt_of(run, "ranks/0.log", 100), "");
  EXPECT_EQ(*excerpt_of(run, "real/0.log", 100), "");
  EXPECT_EQ(*excerpt_of(run + "/linked", "0.log", 100), "");
}

}  // namespace
}  // namespace phalanx::cli
