#include "hosts/connect/payload.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/sha256.h"
#include "os/files.h"

namespace phalanx::hosts {
namespace {

namespace fs = std::filesystem;

std::string unpacked(std::string_view bytes) {
  z_stream stream{};
  EXPECT_EQ(::inflateInit2(&stream, 15 + 16), Z_OK);
  std::string out(4 << 20, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(::inflate(&stream, Z_FINISH), Z_STREAM_END);
  EXPECT_EQ(stream.avail_in, 0U);
  out.resize(stream.total_out);
  ::inflateEnd(&stream);
  return out;
}

class PayloadTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "phalanx-payload-test-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
    for (int i = 0; program_.size() < (1 << 20); ++i) program_ += std::to_string(i * 7919);
    std::ofstream(path()) << program_;
    loop_ = std::move(os::Loop::create()).value();
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path() const { return folder_ + "/program"; }
  std::string kept() const { return folder_ + "/packed"; }
  // Runs the loop until there is an answer.
  base::Result<std::string> ask(Payload& payload, Encoding encoding) {
    std::optional<base::Result<std::string>> got;
    auto waiting = payload.request(*loop_, encoding, [&](const base::Result<std::string_view>& message) {
      got = message.ok() ? base::Result<std::string>(std::string(*message)) : base::Result<std::string>(message.error());
    });
    while (!got) loop_->poll(os::milliseconds(1000));
    return *std::move(got);
  }
  void expect_packed(const std::string& message) {
    size_t end = message.find('\n');
    ASSERT_NE(end, std::string::npos);
    std::string_view bytes = std::string_view(message).substr(end + 1);
    EXPECT_EQ(message.substr(0, end), fmt::format("{} {} gzip {}", base::sha256_hex(program_), program_.size(), bytes.size()));
    EXPECT_LT(bytes.size(), program_.size() * 3 / 4);
    EXPECT_EQ(unpacked(bytes), program_);
  }

  std::string folder_, program_;
  std::unique_ptr<os::Loop> loop_;
};

TEST_F(PayloadTest, RawIsTheProgramBehindItsHeader) {
  Payload payload(path(), kept());
  EXPECT_EQ(ask(payload, Encoding::kRaw).value(),
            fmt::format("{} {} raw {}\n", base::sha256_hex(program_), program_.size(), program_.size()) + program_);
  EXPECT_FALSE(os::exists(kept()));
}

TEST_F(PayloadTest, CompressesOnceAndKeepsItForTheNextLaunch) {
  {
    Payload payload(path(), kept());
    expect_packed(ask(payload, Encoding::kGzip).value());
  }
  struct stat s{};
  ASSERT_EQ(::stat(kept().c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 07777, 0600U);
  fs::remove(path());  // the next launch reads only what was kept
  Payload next(path(), kept());
  next.expect(*loop_);
  expect_packed(ask(next, Encoding::kGzip).value());
}

TEST_F(PayloadTest, AKeptFileThatIsDamagedIsMadeAnew) {
  Payload first(path(), kept());
  ask(first, Encoding::kGzip).value();
  std::string whole = os::read_file(kept(), 4 << 20).value(), damaged = whole;
  damaged[damaged.size() / 2] ^= 1;
  for (const std::string& bytes : {damaged, whole.substr(0, whole.size() / 2), std::string(), std::string(whole.size(), '\0')}) {
    std::ofstream(kept(), std::ios::trunc) << bytes;
    Payload payload(path(), kept());
    expect_packed(ask(payload, Encoding::kGzip).value());
    EXPECT_EQ(os::read_file(kept(), 4 << 20).value(), whole);
  }
}

TEST_F(PayloadTest, StartsWhenALoginIsExpectedAndOnlyIfItCanBeKept) {
  Payload payload(path(), kept());
  payload.expect(*loop_);
  for (int i = 0; i < 1000 && !os::exists(kept()); ++i) loop_->poll(os::milliseconds(0));
  EXPECT_TRUE(os::exists(kept()));
  fs::remove(path());
  expect_packed(ask(payload, Encoding::kGzip).value());  // made before anybody asked

  Payload keeps_nothing(path());
  keeps_nothing.expect(*loop_);
  std::ofstream(path()) << program_;  // would be too late, had it begun
  loop_->poll(os::milliseconds(0));
  expect_packed(ask(keeps_nothing, Encoding::kGzip).value());
}

TEST_F(PayloadTest, AllWhoWaitAreCalledExceptThoseWhoLeft) {
  Payload payload(path());
  int called = 0;
  auto ready = [&](const base::Result<std::string_view>& message) { called += message.ok(); };
  auto one = payload.request(*loop_, Encoding::kGzip, ready), two = payload.request(*loop_, Encoding::kGzip, ready);
  auto gone = payload.request(*loop_, Encoding::kGzip, [&](const base::Result<std::string_view>&) { ADD_FAILURE(); });
  gone.reset();
  ask(payload, Encoding::kGzip).value();
  EXPECT_EQ(called, 2);
}

TEST_F(PayloadTest, AProgramThatCannotBeReadIsAnErrorForEveryHost) {
  Payload payload(folder_ + "/missing", kept());
  for (Encoding encoding : {Encoding::kRaw, Encoding::kGzip}) {
    base::Result<std::string> message = ask(payload, encoding);
    ASSERT_FALSE(message.ok());
    EXPECT_NE(message.error().message.find("missing"), std::string::npos) << message.error().message;
  }
  EXPECT_FALSE(os::exists(kept()));
}

TEST(KeptPayload, LiesInAFolderThatIsOursAlone) {
  std::string folder = fs::temp_directory_path() / "phalanx-kept-test-XXXXXX";
  ASSERT_TRUE(::mkdtemp(folder.data()));
  ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  EXPECT_EQ(kept_payload("0123abcd"), folder + "/phalanx/0123abcd/packed");
  EXPECT_EQ(kept_payload("unidentified"), "");
  EXPECT_EQ(kept_payload("../x"), "");
  fs::permissions(folder + "/phalanx/0123abcd", fs::perms::all);
  EXPECT_EQ(kept_payload("0123abcd"), "");
  ::unsetenv("XDG_CACHE_HOME");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace phalanx::hosts
