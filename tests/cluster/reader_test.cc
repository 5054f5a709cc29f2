// What readers who had only the documentation stumbled over, by the commands that they typed (docs/design/first-hour.md).
#include <algorithm>

#include "base/json.h"
#include "launcher_fixture.h"

namespace {

using namespace phalanx;
using namespace phalanx::testbed;
using namespace std::chrono_literals;

class Reader : public Launcher {
 protected:
  Outcome type(const std::string& command, milliseconds deadline = 30s) {
    return cluster().run_on("ctl", {.argv = {"/bin/bash", "-c", "PATH=" + directory(PHALANX_PROGRAM) + ":$PATH; cd /tmp; " + command}},
                            deadline);
  }
  static std::string directory(const std::string& path) { return path.substr(0, path.rfind('/')); }
  static size_t count(const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
    return n;
  }
};

TEST_F(Reader, ARunWhoseRecordHasNoRoomIsRefused) {
  start({.hosts = 1});
  say("ctl",
      "mkdir -p ~/.local/state && mount -t tmpfs -o size=256k,mode=700 scratchdisk ~/.local/state && "
      "dd if=/dev/zero of=$HOME/.local/state/old bs=4k 2>/dev/null; rm -f /tmp/was-here; true");
  Outcome full = type("phalanx run -H h1 -- touch /tmp/was-here");
  EXPECT_EQ(full.exit_code, 2) << full;
  EXPECT_HAS(full.err, "No space left on device");
  EXPECT_HAS(full.err, "the tmpfs file system scratchdisk, mounted at ");
  EXPECT_HAS(full.err, ".local/state, has 0 B of 256 KiB free");
  EXPECT_HAS(full.err, "hint: choose another folder with --log-dir, or make room: du -xh -d 2 ");
  // Enough for the folder, not for the record of the end.
  say("ctl", "truncate -s -40960 ~/.local/state/old");
  Outcome nearly = type("phalanx run -d -H h1 -- touch /tmp/was-here");
  EXPECT_EQ(nearly.exit_code, 2) << nearly;
  EXPECT_HAS(nearly.err, "there is no room for the record of this run in ");
  EXPECT_EQ(say("h1", "ls /tmp/was-here 2>&1 || true").find("No such file") != std::string::npos, true) << "nothing was started";
  EXPECT_EQ(say("ctl", "ls ~/.local/state/phalanx/runs 2>/dev/null || true"), "") << "nothing is left that stop could not settle";
  Outcome chinese = type("PHALANX_LANG=zh phalanx run -H h1 -- true");
  EXPECT_HAS(chinese.err, "中没有空间保存本次运行的记录");
  EXPECT_HAS(chinese.err, "文件系统 scratchdisk 只剩");
  Outcome elsewhere = type("phalanx run --log-dir /tmp/runs -H h1 -- true");
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere;
  say("ctl", "umount ~/.local/state");
}

TEST_F(Reader, RanksThatPrintNothingAreSaidToRunOnce) {
  start();
  Outcome silent = type("phalanx run -H h1,h2 -- sleep 5");
  EXPECT_EQ(silent.exit_code, 0) << silent;
  EXPECT_EQ(count(silent.err, "phalanx: 2 ranks running, no output yet\n"), 1u) << silent;
  EXPECT_HAS_NOT(type("phalanx run -H h1 -- sh -c 'echo hello; sleep 4'").err, "no output yet");
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Reader, APortOfARunOfOursLeadsToStoppingIt) {
  start();
  Outcome first = type("phalanx run -d -q -H h1,h2 --master-port 29512 -- sleep 1000");
  ASSERT_EQ(first.exit_code, 0) << first;
  const std::string id = first.out.substr(0, first.out.find('\n'));
  Outcome checked = type("phalanx run -H h1,h2 --master-port 29512 -- true");
  EXPECT_EQ(checked.exit_code, 3) << checked;
  EXPECT_HAS(checked.err, "29512 is used by the run " + id + ", which has not ended");
  EXPECT_HAS(checked.err, "hint: phalanx stop " + id + "\n");
  Outcome unchecked = type("phalanx run -H h1,h2 --preflight off --master-addr 10.77.0.1 --master-port 29512 -- true");
  EXPECT_NE(unchecked.exit_code, 0) << unchecked;
  EXPECT_HAS(unchecked.err, "hint: phalanx stop " + id + "\n");
  EXPECT_EQ(type("phalanx stop " + id).exit_code, 0);
  EXPECT_EQ(type("phalanx run -H h1,h2 --master-port 29512 -- true").exit_code, 0);
}

TEST_F(Reader, InspectPrintsWhatStartsTheRunAndARankAgain) {
  start();
  say("ctl", "mkdir -p '/tmp/my project'");
  for (const char* host : {"h1", "h2"}) say(host, "mkdir -p '/tmp/my project'");
  Outcome run = type(
      "cd '/tmp/my project' && phalanx run -q --name again -H h1:2,h2:2 --env FLAVOUR=sweet -- sh -c 'echo $RANK of $WORLD_SIZE "
      "$FLAVOUR in $PWD on $(hostname)'");
  ASSERT_EQ(run.exit_code, 0) << run;
  Outcome inspected = type("phalanx inspect again");
  EXPECT_HAS(inspected.out, "again       cd '/tmp/my project' && phalanx run -H h1:2,h2:2 --export FLAVOUR -- sh -c ");
  const size_t at = inspected.out.find("\nagain  ") + 1, end = inspected.out.find('\n', at);
  Outcome second = type("export FLAVOUR=sour; " + inspected.out.substr(at + 12, end - at - 12));
  EXPECT_EQ(second.exit_code, 0) << second;
  EXPECT_HAS(second.out, "3 of 4 sour in /tmp/my project on h2");
  Outcome rank = type("phalanx inspect again --rank 3");
  EXPECT_EQ(rank.exit_code, 0) << rank;
  EXPECT_EQ(count(rank.out, "\n"), 1u) << rank;
  Outcome alone = type("export FLAVOUR=salty; " + rank.out);
  EXPECT_EQ(alone.exit_code, 0) << alone;
  EXPECT_HAS(alone.out, "3 of 4 salty in /tmp/my project on h2");
  EXPECT_EQ(type("phalanx inspect again --rank 7").exit_code, 2);
  // Where --sync had copied the code, it is copied again.
  say("ctl", "mkdir -p /tmp/code/sub && echo 'echo run from the copy' > /tmp/code/sub/go.sh");
  ASSERT_EQ(type("cd /tmp/code/sub && phalanx run -q -H h1 --sync=.. -- sh go.sh").exit_code, 0);
  EXPECT_HAS(type("phalanx inspect").out, "again       cd /tmp/code/sub && phalanx run -H h1:1 --sync=/tmp/code -- sh go.sh\n");
  EXPECT_EQ(leftovers(2s), "");
}

TEST_F(Reader, ExplainTakesTheNameOfARun) {
  start({.hosts = 1});
  Outcome run =
      type("phalanx run -q --name nightly -H h1 -- python3 -c 'raise RuntimeError(\"CUDA out of memory. Tried to allocate 2 GiB\")'");
  EXPECT_EQ(run.exit_code, 1) << run;
  Outcome explained = type("phalanx explain nightly");
  EXPECT_EQ(explained.exit_code, 0) << explained;
  EXPECT_HAS(explained.out, "out of memory");
  const std::string id = say("ctl", "readlink ~/.local/state/phalanx/runs/latest");
  EXPECT_EQ(type("phalanx explain " + id.substr(id.find_last_not_of('\n') - 3, 4)).out, explained.out) << "the end of its id";
  EXPECT_HAS(type("phalanx explain nosuch").err, "unknown code \"nosuch\"");
}

TEST_F(Reader, PlanAndCheckHonourTheProjectFileAndCopyNothing) {
  start();
  say("ctl",
      "mkdir -p /tmp/proj && cd /tmp/proj && echo 'print(1)' > train.py && echo data > ignored.bin && echo ignored.bin > .gitignore && "
      "printf 'hosts: h1,h2\\nsync: .\\nenv:\\n  API_KEY:\\n' > phalanx.yaml");
  for (const char* verb : {"plan", "check"}) {
    Outcome looked = type(std::string("cd /tmp/proj && phalanx ") + verb + " -- python3 train.py --data ignored.bin");
    EXPECT_EQ(looked.exit_code, 0) << looked;
    const std::string all = looked.out + looked.err;
    EXPECT_HAS(looked.err, "a run would copy /tmp/proj (3 files, ") << verb;
    EXPECT_HAS_NOT(all, "CMD-SCRIPT-MISSING") << verb;
    EXPECT_HAS_NOT(all, "FS-WORKDIR-MISSING") << verb;
    EXPECT_HAS(all, "ENV-UNSET") << verb;
    EXPECT_HAS(all, "phalanx.yaml:4:3: API_KEY has no value here") << verb;
    EXPECT_EQ(say("h1", "ls ~/.cache/phalanx/sync 2>/dev/null || true"), "") << verb << " copies nothing";
  }
  Outcome refused = type("cd /tmp/proj && phalanx run -- python3 train.py");
  EXPECT_EQ(refused.exit_code, 2) << refused;
  EXPECT_HAS(refused.err, "hint: export API_KEY=<value>");
  EXPECT_EQ(type("cd /tmp/proj && phalanx clean -H h1,h2").exit_code, 0) << "no host has the directory";
  const Outcome run = type("cd /tmp/proj && API_KEY=1 phalanx run -- python3 train.py");
  for (const char* line : {"[h1:0] 1\n", "[h2:1] 1\n"}) EXPECT_HAS(run.out, line);
}

// The connection of a host that has said its end ends too: no word of that.
TEST_F(Reader, AnOrdinaryEndIsNoLossOfContact) {
  start();
  for (int i = 0; i < 3; ++i) EXPECT_HAS_NOT(type("phalanx run -v -H h1,h2 -- true").err, "lost contact");
  EXPECT_EQ(say("ctl", "cat ~/.local/state/phalanx/runs/2*/events.jsonl | grep -c 'lost contact' || true"), "0\n");
  EXPECT_EQ(say("ctl", "cat ~/.local/state/phalanx/runs/2*/events.jsonl | grep -c host_finished"), "6\n");
}

}  // namespace
