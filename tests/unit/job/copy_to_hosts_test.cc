// A host that does not keep to the conversation while a folder is copied to it.
#include "job/copy/copy_to_hosts.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "hosts/packed_program.h"
#include "wire/control_messages.h"
#include "wire/frame.h"

namespace phalanx::job {
namespace {

namespace fs = std::filesystem;

// Its agent says what is in a file, and then nothing.
class Recorded : public hosts::Transport {
 public:
  explicit Recorded(std::string file) : file_(std::move(file)) {}
  hosts::Launch launch(const hosts::Target&, int) const override {
    return {.argv = {"sh", "-c", "cat \"$0\"; exec cat > /dev/null", file_}};
  }
  base::Error explain(const hosts::Target&, const hosts::Death& death) const override {
    return base::fail(base::ErrorKind::kUnreachable, "the transport ended").because(death.stderr_text);
  }
  bool may_retry(const hosts::Death&) const override { return false; }

 private:
  std::string file_;
};

class CopyToHostsTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as in the launcher
    folder_ = fs::temp_directory_path() / "phalanx-copy-to-hosts-test-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  CopiedHost copied(const std::string& said) {
    std::ofstream(folder_ + "/said") << wire::kStreamMagic << said;
    Recorded transport(folder_ + "/said");
    base::Result<std::unique_ptr<os::Loop>> loop = os::Loop::create();
    const hosts::PackedProgram program("x");
    hosts::Payload payload(program.image());
    const sync::Manifest manifest;
    CopyToHosts copy(**loop, {{"h1", "h1", 0}}, {&transport}, payload, {}, {.name = "c", .root = folder_, .manifest = &manifest});
    base::Result<std::vector<CopiedHost>> hosts = copy.run();
    EXPECT_TRUE(hosts.ok() && hosts->size() == 1);
    return hosts.ok() ? hosts->at(0) : CopiedHost{};
  }

  std::string folder_;
};

TEST_F(CopyToHostsTest, AnAgentThatBeginsTwiceIsGivenUp) {
  std::string twice;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(wire::encode(twice, wire::Hello{}).ok());
  const CopiedHost host = copied(twice);
  ASSERT_TRUE(host.error);
  EXPECT_NE(host.error->message.find("the agent began twice"), std::string::npos) << host.error->message;
}

TEST_F(CopyToHostsTest, AnAgentThatBeginsWithNonsenseIsGivenUp) {
  std::string nonsense;
  ASSERT_TRUE(wire::put_frame(nonsense, wire::FrameType::kHello, "x").ok());
  EXPECT_TRUE(copied(nonsense).error);
}

}  // namespace
}  // namespace phalanx::job
