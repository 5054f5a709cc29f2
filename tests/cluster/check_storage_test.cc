// Faults of file systems that are really made on the test cluster, found by `phalanx check`.
#include "check_fixture.h"

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

class CheckStorage : public Check {};

TEST_F(CheckStorage, SharedMemoryOfOneMebibyte) {
  HostOptions small;
  small.shm.size_kib = 1024;
  start({.hosts = 3, .host = {HostOptions{}, small}});
  expect(check(kHosts), "FS-SHM-SMALL", "h2");
  say("h2", "mount -o remount,size=50% /dev/shm");  // not told where this machine is a container itself, and docker's option is
  expect_gone(check(kHosts), "FS-SHM-SMALL");
}

TEST_F(CheckStorage, FullReadOnlyAndWithoutInodes) {
  start({.hosts = 3});
  Words command = with(kHosts, {"--", "python3", "train.py", "--output_dir", "/tmp/out"});
  for (const std::string& host : cluster().hosts()) say(host, "mkdir /tmp/out; touch /tmp/train.py");
  say("ctl", "touch /tmp/train.py");

  say("h2", "mount -t tmpfs -o size=4m full /tmp/out; dd if=/dev/zero of=/tmp/out/old bs=64k 2>/dev/null; true");
  expect(check(command), "FS-DISK-FULL", "h2");
  say("h2",
      "umount /tmp/out; mount -t tmpfs -o size=64m,nr_inodes=8 few /tmp/out; for i in 1 2 3 4 5 6 7 8 9; do touch /tmp/out/$i 2>/dev/null; "
      "done; true");
  expect(check(command), "FS-INODES-FULL", "h2");
  say("h2", "umount /tmp/out; mount -t tmpfs -o ro ro /tmp/out");
  Checked read_only = check(command);
  expect(read_only, "FS-READ-ONLY", "h2");
  say("h2", "umount /tmp/out");
  Checked clean = check(command);
  for (const char* code : {"FS-DISK-FULL", "FS-INODES-FULL", "FS-READ-ONLY"}) expect_gone(clean, code);
}

TEST_F(CheckStorage, AFileSystemThatHangs) {
  start({.hosts = 3});
  for (const std::string& host : cluster().hosts()) say(host, "mkdir -p /tmp/data; touch /tmp/train.py");
  auto server = cluster().start_on("h2", {.argv = {"python3", script("fuse_fs.py"), "hung", "/tmp/data"}});
  ASSERT_TRUE(server.ok());
  if (!server->wait_output("mounted", 5s)) GTEST_SKIP() << "no FUSE here: " << server->err();
  Words command = with(kHosts, {"--", "python3", "/tmp/train.py", "--data_path", "/tmp/data"});
  Checked checked = check(command);
  expect(checked, "FS-HUNG", "h2");
  EXPECT_LT(checked.outcome.took, 15s) << "one hung file system costs the time that a slow one would be given, and no more";
  server->signal(SIGKILL);  // its end releases everybody who waits
  EXPECT_TRUE(server->wait(2s));
  say("h2", "umount -l /tmp/data");
  expect_gone(check(command), "FS-HUNG");
}

TEST_F(CheckStorage, MountsAndContents) {
  start({.hosts = 3});
  for (const std::string& host : cluster().hosts())
    say(host,
        "touch /tmp/train.py; mkdir -p /tmp/data /tmp/model; seq 500 > "
        "/tmp/model/config.json");
  Words command = with(kHosts, {"--", "python3", "/tmp/train.py", "--data_path", "/tmp/data", "--model_name_or_path", "/tmp/model"});
  expect_gone(check(command), "FS-MOUNT-MISSING");
  std::vector<Process> servers;
  for (const char* host : {"h1", "h2"}) {
    auto server = cluster().start_on(host, {.argv = {"python3", script("fuse_fs.py"), "empty", "/tmp/data"}});
    ASSERT_TRUE(server.ok());
    if (!server->wait_output("mounted", 5s)) GTEST_SKIP() << "no FUSE here: " << server->err();
    servers.push_back(std::move(server).value());
  }
  say("h3", "echo old > /tmp/data/old.txt");  // an empty folder would be the same content
  expect(check(command), "FS-MOUNT-MISSING", "h3");
  auto third = cluster().start_on("h3", {.argv = {"python3", script("fuse_fs.py"), "empty", "/tmp/data"}});
  ASSERT_TRUE(third.ok() && third->wait_output("mounted", 5s));
  say("h2", "echo changed >> /tmp/model/config.json");
  expect(check(command), "FS-CONTENT-DIFFERS", "h2");
  say("h2", "seq 500 > /tmp/model/config.json; mv /tmp/model /tmp/model.away");
  expect(check(command), "FS-PATH-ONLY-ON", "h2");
  say("h2", "mv /tmp/model.away /tmp/model");
  Checked clean = check(command);
  for (const char* code : {"FS-MOUNT-MISSING", "FS-CONTENT-DIFFERS", "FS-PATH-ONLY-ON"}) expect_gone(clean, code);
}

}  // namespace
