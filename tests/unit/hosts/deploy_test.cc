#include "hosts/connect/deploy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "hosts/connect/openssh.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/process.h"
#include "wire/frame.h"

namespace phalanx::hosts {
namespace {

TEST(DeployScript, PassesThroughEveryLoginShellUnchanged) {
  std::string script = deploy_script("0123abcd", "f00d");
  for (char c : {'\'', '\\', '!', '\n', '`'}) EXPECT_EQ(script.find(c), std::string::npos) << "character " << c;
  EXPECT_NE(script.find("0123abcd"), std::string::npos);
  EXPECT_NE(script.find("f00d"), std::string::npos);
  EXPECT_EQ(script.find('@'), std::string::npos);
}

// The cached agent is started without the help of any other program (PATH is empty here), and with the login's umask.
TEST(DeployScript, RunsACachedAgentByItself) {
  std::string home = "/tmp/phalanx-deploy-test-XXXXXX";
  ASSERT_TRUE(::mkdtemp(home.data()));
  std::string folder = home + "/.cache/phalanx/0123abcd", agent = folder + "/phalanx";
  ASSERT_TRUE(os::make_folders(folder).ok());
  std::ofstream(agent) << "#!/bin/sh\necho $* $(umask)\n";
  ASSERT_EQ(::chmod(agent.c_str(), 0700), 0);
  // As the script leaves them.
  for (const std::string& made : {folder, home + "/.cache/phalanx"}) ASSERT_EQ(::chmod(made.c_str(), 01700), 0);
  os::PipeEnds out = os::make_pipe().value();
  os::SpawnSpec spec;
  spec.program = "/bin/sh";
  spec.arguments = {"sh", "-c", "umask 027; exec /bin/sh -c '" + deploy_script("0123abcd", "f00d") + "'"};
  spec.environment = {"PATH=/nonexistent", "HOME=" + home};
  spec.fds = {{out.write.get(), 1}};
  pid_t pid = os::spawn(spec).value();
  out.write.reset();
  char text[64] = "";
  ASSERT_GE(::read(out.read.get(), text, sizeof(text) - 1), 0);
  EXPECT_STREQ(text, "agent 0027\n");
  ::waitpid(pid, nullptr, 0);
  std::filesystem::remove_all(home);
}

TEST(DeployTalk, ACachedAgentNeedsNoTalk) {
  DeployTalk talk;
  std::string rest, stream = "motd\n" + std::string(wire::kStreamMagic) + "frames";
  EXPECT_EQ(talk.feed(stream, rest).value(), DeployTalk::Ask::kNothing);
  EXPECT_EQ(rest, stream);
  EXPECT_FALSE(talk.uploaded());
}

TEST(DeployTalk, AsksForTheBinaryFolderByFolder) {
  DeployTalk talk;
  std::string rest;
  EXPECT_EQ(talk.feed("noise\nPHALANX-BAD /home/a cannot hold programs\nPHALANX-NE", rest).value(), DeployTalk::Ask::kNothing);
  EXPECT_EQ(talk.feed("ED gzip /tmp/x\n", rest).value(), DeployTalk::Ask::kGzip);
  EXPECT_EQ(talk.feed("PHALANX-BAD /tmp/x the copy was not whole\n", rest).value(), DeployTalk::Ask::kNothing);
  EXPECT_EQ(talk.feed("PHALANX-NEED raw /dev/shm/x\n", rest).value(), DeployTalk::Ask::kRaw);
  EXPECT_EQ(talk.feed(wire::kStreamMagic, rest).value(), DeployTalk::Ask::kNothing);
  EXPECT_EQ(talk.refusals().size(), 2u);
  EXPECT_TRUE(talk.uploaded());
  EXPECT_EQ(rest, "noise\n" + std::string(wire::kStreamMagic));
}

TEST(DeployTalk, AHostThatAsksOrRefusesForEverIsGivenUp) {
  for (const std::string line : {"PHALANX-NEED raw /x\n", "PHALANX-BAD x\n"}) {
    DeployTalk talk;
    std::string rest;
    int taken = 0;
    while (taken < 100 && talk.feed(line, rest).ok()) ++taken;
    EXPECT_EQ(taken, 8) << line;
    EXPECT_LE(talk.refusals().size(), 8u);
  }
  DeployTalk talk;
  std::string rest;
  EXPECT_TRUE(talk.feed("PHALANX-BAD /x " + std::string(60'000, 'y') + "\n", rest).ok());
  EXPECT_LE(talk.refusals().at(0).size(), 500u);
}

TEST(DeployTalk, NoiseWithoutAnEndOfLineHidesNoMarker) {
  DeployTalk talk;
  std::string rest;
  EXPECT_EQ(talk.feed("Welcome! $ PHALANX-NEED gzip /tmp/x\n", rest).value(), DeployTalk::Ask::kGzip);
  EXPECT_EQ(rest, "Welcome! $ \n");
}

TEST(DeployTalk, NoPlaceAtAll) {
  DeployTalk talk;
  std::string rest;
  ASSERT_TRUE(talk.feed("PHALANX-BAD /a x\nPHALANX-NOPLACE\n", rest).ok());
  EXPECT_TRUE(talk.no_place());
}

TEST(Openssh, ReadsWhatSshSaid) {
  OpensshTransport ssh({});
  Target target{"gpu02", "me@gpu02", 2222};
  auto message = [&](const std::string& text) { return ssh.explain(target, Death{255 << 8, text}); };
  EXPECT_EQ(message("Host key verification failed.\r\n").message, "gpu02: the host key is unknown");
  EXPECT_EQ(message("me@gpu02: Permission denied (publickey).\r\n").hint, "ssh-copy-id -p 2222 me@gpu02");
  EXPECT_EQ(message("ssh: connect to host gpu02 port 2222: Connection refused\r\n").message, "gpu02: nothing listens on the ssh port");
  EXPECT_EQ(message("something new\n").message, "gpu02: the ssh connection failed");
  EXPECT_EQ(message("something new\n").kind, base::ErrorKind::kUnreachable);
  EXPECT_EQ(message("\x1b]0;title\a\x1b[2Jnews\r\n").render().find_first_of("\x1b\a\r"), std::string::npos);
  EXPECT_TRUE(ssh.may_retry(Death{255 << 8, "kex_exchange_identification: read: Connection reset by peer"}));
  EXPECT_TRUE(ssh.may_retry(Death{255 << 8, "mux_client_request_alive: write packet: Broken pipe"}));
  EXPECT_TRUE(ssh.may_retry(Death{126 << 8, "sh: 1: exec: /root/.cache/phalanx/0123abcd/phalanx: Text file busy"}));
  EXPECT_FALSE(ssh.may_retry(Death{255 << 8, "Permission denied (publickey)."}));
}

TEST(Openssh, NothingOfTheUserIsInTheRemoteCommand) {
  OpensshOptions options;
  options.build = "0123abcd";
  options.extra = {"ProxyJump=bastion"};
  Launch launch = OpensshTransport(options).launch({"gpu02", "gpu02", 0}, 0);
  EXPECT_TRUE(launch.deploys);
  auto has = [&](const std::string& word) { return std::find(launch.argv.begin(), launch.argv.end(), word) != launch.argv.end(); };
  EXPECT_TRUE(has("BatchMode=yes"));
  // Whatever ~/.ssh/config says: nothing of the launcher's machine can be used from the host.
  for (const char* closed : {"ClearAllForwardings=yes", "ForwardAgent=no", "ForwardX11=no", "Tunnel=no"})
    EXPECT_TRUE(has(closed)) << closed;
  EXPECT_TRUE(has("ProxyJump=bastion"));
  EXPECT_LT(std::find(launch.argv.begin(), launch.argv.end(), "ProxyJump=bastion"),
            std::find(launch.argv.begin(), launch.argv.end(), "BatchMode=yes"));
  EXPECT_EQ(launch.argv[launch.argv.size() - 2], "gpu02");
  EXPECT_EQ(launch.argv[launch.argv.size() - 3], "--");
  // Only the name of the unfinished copy differs, and it differs every time.
  auto tag = [](const Launch& l) { return l.argv.back().substr(l.argv.back().find(".new.") + 5, 16); };
  EXPECT_EQ(launch.argv.back(), remote_command("0123abcd", tag(launch)));
  EXPECT_EQ(tag(launch).find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(tag(launch), tag(OpensshTransport(options).launch({"gpu02", "gpu02", 0}, 0)));
}

}  // namespace
}  // namespace phalanx::hosts
