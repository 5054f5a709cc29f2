// Containers: the text form, the start line run by real shells with a stand-in for the engine, and what its failures become.
#include "hosts/connect/container.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "hosts/connect/container_end.h"
#include "hosts/connect/container_start.h"
#include "os/capture.h"
#include "os/files.h"

namespace phalanx::hosts {
namespace {

namespace fs = std::filesystem;
using Kind = Container::Kind;

TEST(ContainerText, KindsAndWhatTheyHold) {
  for (const char* text : {"docker:train", "podman:a_b.c-1", "docker-image:nvcr.io/nvidia/pytorch:24.05-py3", "podman-image:x@sha256:0a",
                           "apptainer:/data/my image.sif", "command:chroot '/srv/a b' {}"}) {
    base::Result<Container> container = parse_container(text);
    ASSERT_TRUE(container.ok()) << container.error().render();
    EXPECT_EQ(to_text(*container), text);
  }
  EXPECT_EQ(parse_container("docker-image:x")->kind, Kind::kDockerImage);
  EXPECT_TRUE(parse_container("apptainer:/x.sif")->made_for_run());
  EXPECT_FALSE(parse_container("podman:x")->made_for_run());
  EXPECT_FALSE(Container{});
}

TEST(ContainerText, WhatAShellOrAnEngineCouldReadOtherwiseIsRefused) {
  for (const char* text : {"train",
                           "docker",
                           "docker:",
                           "docker:a b",
                           "docker:-v",
                           "docker:--privileged",
                           "docker:$(id)",
                           "docker:a;b",
                           "docker:a'b",
                           "docker:a/b",
                           "docker-image:-x",
                           "docker-image:a b",
                           "docker-image:`id`",
                           "lxc:x",
                           "apptainer:x.sif",
                           "apptainer:/a,b.sif",
                           "apptainer:/a:b",
                           "command:chroot /x",
                           "command:a\n{}",
                           "podman:a\nb"}) {
    base::Result<Container> container = parse_container(text);
    ASSERT_FALSE(container.ok()) << text;
    EXPECT_EQ(container.error().kind, base::ErrorKind::kUsage);
    EXPECT_FALSE(container.error().hint.empty()) << text;
  }
  EXPECT_FALSE(parse_container("command:" + std::string(5000, 'x') + "{}").ok());
}

// A stand-in for docker that writes down its arguments, and fails as it is told.
class Engine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / "phalanx-container-XXXXXX";
    ASSERT_TRUE(::mkdtemp(folder_.data()));
    fs::create_directory(folder_ + "/bin");
    put("docker",
        "#!/bin/sh\nfor word do printf '<%s>' \"$word\"; done >>\"$0.log\"; echo >>\"$0.log\"\n"
        "case $1 in exec|run) echo 'docker says no' >&2; exit 125 ;; esac\ncase $2 in inspect) cat \"$0.state\" ;; "
        "*) printf 'one\\ntwo\\n' ;; esac\n");
    fs::create_symlink("docker", folder_ + "/bin/podman");
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/bin/" + name) << text;
    ::chmod((folder_ + "/bin/" + name).c_str(), 0755);
  }
  // As a login shell would run what ssh is given; what came on stderr.
  std::string login(const std::string& shell, const Container& container, int code) {
    Target target{.name = "h1", .destination = "h1", .container = container};
    std::ofstream(folder_ + "/line") << far_command(target, "0123abcd");
    const std::string command = "PATH=" + folder_ + "/bin:$PATH HOME=" + folder_ +
                                "/home; export PATH HOME; unset XDG_CACHE_HOME PHALANX_CACHE; mkdir -p $HOME; cd " + folder_ + "; " +
                                shell + " -c \"$(cat line)\" </dev/null 2>err >out; echo $? >code";
    EXPECT_EQ(std::system(("/bin/sh -c " + base::shell_quote(command)).c_str()), 0);
    EXPECT_EQ(base::trim(os::read_file(folder_ + "/code", 99).value()), std::to_string(code)) << read("err");
    return read("err");
  }
  std::string read(const std::string& name) {
    base::Result<std::string> text = os::read_file(folder_ + "/" + name, 1 << 20);
    return text.ok() ? *text : "";
  }
  std::string folder_;
};

TEST_F(Engine, EveryLoginShellPassesTheLineOn) {
  Container container = parse_container("docker:train").value();
  container.arguments = {"--env", "A=it's \\ !x $HOME `id`"};
  for (const char* shell : {"sh", "bash", "dash", "zsh", "csh", "tcsh", "fish", "busybox sh"}) {
    if (std::system(("command -v " + std::string(shell).substr(0, std::string(shell).find(' ')) + " >/dev/null").c_str()) != 0) continue;
    fs::remove(folder_ + "/bin/docker.log");
    EXPECT_EQ(login(shell, container, 125), "docker says no\nPHALANX-CONTAINER absent one two\n") << shell;
    const std::string log = read("bin/docker.log");
    EXPECT_NE(log.find("<exec><-i><--env><A=it's \\ !x $HOME `id`><train><sh><-c><PHALANX_OUTSIDE=$1; "), std::string::npos)
        << shell << log;
    EXPECT_NE(log.find("<sh><net=net:["), std::string::npos) << log;
  }
}

TEST_F(Engine, AFailureSaysWhatThereIsInstead) {
  const Target target{.name = "h1", .destination = "root@h1", .container = parse_container("docker:train").value()};
  auto explained = [&](const std::string& text, bool started = false) {
    std::optional<base::Error> error = explain_container(target, {125 << 8, text}, started);
    return error ? error->render() : "";
  };
  EXPECT_EQ(explained(login("sh", target.container, 125)),
            "error: h1: docker has no container train\n  because running containers: one, two\n\nhint: ssh root@h1 docker ps --all\n");
  put("docker.state", "exited\n");
  EXPECT_EQ(
      explained(login("sh", target.container, 125)),
      "error: h1: the container train is not running (state: exited)\n  because docker says no\n\nhint: ssh root@h1 docker start train\n");
  EXPECT_NE(explained("PHALANX-CONTAINER state paused\n").find("hint: ssh root@h1 docker unpause train"), std::string::npos);
  EXPECT_NE(explained("PHALANX-CONTAINER engine\nPHALANX-CONTAINER silent\n").find("docker is not installed"), std::string::npos);
  EXPECT_NE(explained("no socket\nPHALANX-CONTAINER silent\n").find("docker does not answer\n  because no socket\n"), std::string::npos);
  EXPECT_NE(explained("PHALANX-CONTAINER state running\n").find("could not be started in docker:train (exit code 125)"), std::string::npos);
  EXPECT_EQ(explained("PHALANX-CONTAINER state running\n", true), "");
  EXPECT_NE(explained("PHALANX-CONTAINER state exited\n", true).find("the container train has stopped"), std::string::npos);
  EXPECT_EQ(explained("ssh: connect to host h1 port 22: Connection refused\n"), "");
  // The host's words are data.
  const std::string hostile = explained("PHALANX-CONTAINER absent \x1b[2J$(id) " + std::string(5000, 'x') + "\n");
  EXPECT_EQ(hostile.find('\x1b'), std::string::npos);
  EXPECT_NE(hostile.find("hint: ssh root@h1 docker ps --all"), std::string::npos);
}

TEST_F(Engine, AnImageIsStartedWithWhatItNeedsAndShownLikeThat) {
  Container container = parse_container("docker-image:torch:1").value();
  container.directory = "/a dir/it's";
  container.arguments = {"-v", "/mnt:/mnt"};
  EXPECT_TRUE(shown_start(container).starts_with(
      "docker run --rm --interactive --pull never --network host --ipc host --pid host --ulimit memlock=-1 "))
      << shown_start(container);
  EXPECT_NE(shown_start(container).find("[--gpus all] [--device /dev/infiniband]"), std::string::npos);
  EXPECT_TRUE(shown_start(container).ends_with(" -v /mnt:/mnt torch:1 …"));
  // The deployed agent is there already, in a folder of ours.
  const std::string cache = folder_ + "/home/.cache/phalanx/0123abcd";
  fs::create_directories(cache);
  std::ofstream(cache + "/phalanx") << "#!/bin/sh\n";
  ::chmod((folder_ + "/home/.cache/phalanx").c_str(), 01700);
  ::chmod(cache.c_str(), 01700);
  ::chmod((cache + "/phalanx").c_str(), 0755);
  put("docker.state", "present\n");
  EXPECT_EQ(login("sh", container, 125), "docker says no\nPHALANX-CONTAINER state present\n");
  const std::string log = read("bin/docker.log");
  EXPECT_NE(log.find("<run><--rm><--interactive><--pull><never><--network><host><--ipc><host><--pid><host><--ulimit><memlock=-1><--user>"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find("<--mount><type=bind,source=/a dir/it's,target=/a dir/it's>"), std::string::npos) << log;
  EXPECT_NE(log.find("<--entrypoint></opt/phalanx-agent/phalanx><-v></mnt:/mnt><torch:1><agent>\n"), std::string::npos) << log;
}

TEST(ContainerHint, TypedCommandsGoIntoTheContainer) {
  Target target{.name = "h1", .destination = "h1", .container = parse_container("podman:train").value()};
  EXPECT_EQ(typed(target, "df"), "ssh h1 podman exec train sh -c df");
  EXPECT_EQ(typed(target, "df -h | head"), R"(ssh h1 'podman exec train sh -c '\''df -h | head'\''')");
  target.container = parse_container("docker-image:x").value();
  EXPECT_EQ(typed(target, "df"), "df    # in docker-image:x on h1");
}

}  // namespace
}  // namespace phalanx::hosts
