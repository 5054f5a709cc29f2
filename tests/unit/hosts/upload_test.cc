// The program on its way to a host: a connection that stops moving is given up and says how far it came; a slow one is not.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "hosts/connect/opener.h"
#include "hosts/packed_program.h"
#include "os/files.h"
#include "wire/frame.h"

namespace phalanx::hosts {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The far side is a shell script here. It is `warm`: the opener looks at it after the timeout, without the two seconds that ssh is granted.
class ScriptTransport : public Transport {
 public:
  explicit ScriptTransport(std::string script) : script_(std::move(script)) {}
  Launch launch(const Target&, int) const override { return {.argv = {"sh", "-c", script_}, .deploys = true, .warm = true}; }
  base::Error explain(const Target&, const Death& death) const override {
    return base::fail(base::ErrorKind::kUnreachable, "the transport ended").because(death.stderr_text);
  }
  bool may_retry(const Death&) const override { return true; }

 private:
  std::string script_;
};

class UploadTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in the launcher
    folder_ = fs::temp_directory_path() / "phalanx-upload-test-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
    std::string stream(wire::kStreamMagic);
    ASSERT_TRUE(wire::put_frame(stream, wire::FrameType::kHello, "").ok());
    std::ofstream(folder_ + "/stream") << stream;
    loop_ = std::move(os::Loop::create()).value();
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Runs until the host has sent a frame or has failed.
  void open(const std::string& script, OpenerOptions options) {
    const PackedProgram program(std::string(kProgramBytes, 'x'));
    Payload payload(program.image());
    ScriptTransport transport(script);
    Opener opener(*loop_, payload, {{Target{"h1", "h1", 0}, &transport}}, options,
                  {[this](size_t, const wire::Frame&) { opened_ = true; },
                   [this](size_t, base::Error error, std::optional<wire::GuardEnd>) {
                     if (!opened_) error_ = std::move(error);
                   }},
                  1);
    ASSERT_TRUE(loop_->on_child([&](pid_t pid, int status) { opener.on_child(pid, status); }).ok());
    os::Mono limit = os::mono_now() + 20s;
    opener.start();
    while (!opened_ && !error_ && os::mono_now() < limit) loop_->poll(100ms);
    opener.shut();
    while (!opener.over() && os::mono_now() < limit) loop_->poll(100ms);
    EXPECT_TRUE(opener.over());
  }

  static constexpr size_t kProgramBytes = 600'000;
  std::string folder_;
  std::unique_ptr<os::Loop> loop_;
  bool opened_ = false;
  std::optional<base::Error> error_;
};

OpenerOptions quick(os::milliseconds stall) { return {.timeout = 300ms, .upload_stall = stall, .slowest_link = 1 << 30}; }

TEST_F(UploadTest, AConnectionThatStopsAfterSomeBytesFailsAndSaysHowManyWereSent) {
  open("echo PHALANX-NEED raw /home/me/.cache/phalanx; head -c 100000 >/dev/null; exec sleep 60", quick(150ms));
  EXPECT_FALSE(opened_);
  ASSERT_TRUE(error_);
  EXPECT_EQ(error_->kind, base::ErrorKind::kUnreachable);
  int sent = 0, total = 0;
  ASSERT_EQ(std::sscanf(error_->message.c_str(), "h1: sending the program stalled: %d of %d bytes sent, no progress for", &sent, &total), 2)
      << error_->render();
  EXPECT_GE(sent, 100'000);
  EXPECT_LT(sent, total);
  EXPECT_GT(total, static_cast<int>(kProgramBytes));
  EXPECT_LT(total, static_cast<int>(kProgramBytes) + 200);  // and the header
  EXPECT_NE(error_->cause.find("accepts no more data"), std::string::npos) << error_->render();
  EXPECT_NE(error_->cause.find("/home/me/.cache/phalanx"), std::string::npos) << error_->render();
  EXPECT_EQ(error_->hint, "ssh h1 'df -h ~/.cache /var/tmp /tmp'");
}

// The whole takes several times as long as the longest pause that is tolerated.
TEST_F(UploadTest, ASlowConnectionThatKeepsMovingIsNotGivenUp) {
  os::Mono began = os::mono_now();
  open(
      "echo PHALANX-NEED raw /tmp/x; i=0; while [ $i -lt 50 ]; do head -c 11000 >/dev/null; sleep 0.02; i=$((i+1)); done; "
      "head -c 50000 >/dev/null; cat '" +
          folder_ + "/stream'; exec sleep 60",
      quick(600ms));
  EXPECT_TRUE(opened_);
  EXPECT_FALSE(error_) << error_->render();
  EXPECT_GT(os::mono_now() - began, 900ms);
}

TEST_F(UploadTest, AHostThatTookEverythingAndStaysSilentFails) {
  open("echo PHALANX-NEED raw /tmp/x; cat >/dev/null; exec sleep 60", quick(150ms));
  EXPECT_FALSE(opened_);
  ASSERT_TRUE(error_);
  EXPECT_NE(error_->cause.find("no agent started"), std::string::npos) << error_->render();
}

// What is still in buffers cannot be observed: a slow link gets the time that it needs for all of it.
TEST_F(UploadTest, BytesThatAreStillOnTheirWayGetTheTimeOfASlowLink) {
  OpenerOptions options = quick(150ms);
  options.slowest_link = 300'000;  // 2 s for the program
  open("echo PHALANX-NEED raw /tmp/x; head -c 600000 >/dev/null; sleep 1; cat '" + folder_ + "/stream'; exec sleep 60", options);
  EXPECT_TRUE(opened_);
  EXPECT_FALSE(error_) << error_->render();
}

}  // namespace
}  // namespace phalanx::hosts
