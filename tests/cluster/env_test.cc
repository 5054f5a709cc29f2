// env on hosts: an environment at another place there, used at once, and what can come in between.
#include "base/json.h"
#include "base/text.h"
#include "launcher_fixture.h"

using namespace phalanx;

namespace {

using namespace phalanx::testbed;
using namespace std::chrono_literals;

constexpr const char* kThere = "/root/data/environments-of-this-project/llm";

class Env : public Launcher {
 protected:
  // A conda environment in /root/envs/llm, and in /root/reference what an installer would have made for `kThere`; both with a package in
  // editable mode that lies in /root/tool.
  void environment(int parts = 0) {
    say("ctl",
        "mkdir -p /root/tool/src/tool && cd /root/tool && echo 'here = __file__' > src/tool/__init__.py && mkdir .git && echo x > .git/x");
    say("ctl", std::string("cd /root && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=" TESTBED_PROJECT "/tests/env python3 -c \"\n") +
                   "from conda_env import *\n"
                   "compiled = compile_program('/root')\n"
                   "Conda('/root/envs/llm', '/root/envs/llm', compiled, padding_packages=30)\n"
                   "Conda('/root/reference', '" +
                   kThere +
                   "', compiled, padding_packages=30)\n"
                   "for root, source in (('/root/envs/llm', '/root/tool/src'), ('/root/reference', '" +
                   kThere +
                   "/src/tool')):\n"
                   "    open(root + '/' + SITE + '/tool.pth', 'w').write(source + '\\n')\n\"");
    for (int i = 0; i < parts; ++i) say("ctl", "head -c 2000000 /dev/urandom > /root/envs/llm/lib/part" + std::to_string(i));
  }
  static Command typed(const Words& args, const std::string& language = "en") {
    Command command;
    command.argv = testbed::with({PHALANX_PROGRAM, "env"}, args);
    command.env = {{"PHALANX_LANG", language}};
    return command;
  }
  Outcome env(const Words& args) { return cluster().run_on("ctl", typed(args), 60s); }
  Process env_later(const Words& args) {
    base::Result<Process> process = cluster().start_on("ctl", typed(args));
    EXPECT_TRUE(process.ok());
    return std::move(*process);
  }
  base::Json json_of(const Outcome& outcome) {
    base::Result<base::Json> json = base::parse_json(outcome.out);
    EXPECT_TRUE(json.ok()) << outcome;
    return json.ok() ? *json : base::Json::object();
  }
  // Types, modes, links and contents of a tree, without what a push leaves and what lies outside of the reference.
  std::string tree(const std::string& host, const std::string& folder) {
    return say(host, "cd '" + folder +
                         "' && find . -path ./src/tool -prune -o -name .phalanx-push -o ! -type d -printf '%p %y %m %l\\n' | sort && "
                         "find . -path ./src/tool -prune -o -name .phalanx-push -o -type f -print0 | sort -z | xargs -0 sha256sum");
  }
  // Until so many whole parts are on the host.
  bool wait_parts(const std::string& host, int parts) {
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    const std::string count =
        std::string("find '") + kThere + "/.phalanx-push.part/blobs' -type f ! -name 'new.*' -size +1M 2>/dev/null | wc -l";
    while (std::chrono::steady_clock::now() < deadline)
      if (base::parse_int(base::trim(say(host, count)), 0, 1000).value() >= parts) return true;
    return false;
  }
};

TEST_F(Env, ArrivesAsIfInstalledThereAndIsVerified) {
  start({.hosts = 2});
  environment();
  Outcome first = env({"push", "/root/envs/llm", "h1,h2", "--to", kThere});
  ASSERT_EQ(first.exit_code, 0) << first;
  EXPECT_HAS(first.out, "h[1-2]: ");
  EXPECT_HAS(first.out, "nothing is wrong; fingerprint ");
  EXPECT_HAS(first.err, "the editable install /root/tool/src comes along as src/tool (1 file, ");
  const std::string there = kThere;
  for (const char* host : {"h1", "h2"}) {
    EXPECT_EQ(tree(host, kThere), tree("ctl", "/root/reference")) << host;
    EXPECT_EQ(say(host, "ls -A '" + there + "/src/tool'"), "tool\n");
    EXPECT_HAS(say(host, "'" + there + "/bin/where'"), there + "/lib:" + there + "/lib64\n");
    EXPECT_EQ(say(host, "'" + there + "/bin/torchrun'"), there + "/bin/python\n");
    EXPECT_EQ(say(host, "'" + there + "/bin/python' -c \"import site; site.addsitedir('" + there + "/" +
                            "'+__import__('glob').glob('lib/python*', root_dir='" + there +
                            "')[0]+'/site-packages'); import tool; print(tool.here)\""),
              there + "/src/tool/tool/__init__.py\n");
  }

  // Ten files change, one of them names the place: no more than these are sent, though others were rewritten on their way.
  say("ctl",
      "cd /root/envs/llm && for i in 1 2 3 4 5 6 7 8 9; do echo \"changed $i\" > lib/new$i; done && echo 'home=/root/envs/llm' > etc-file");
  Outcome second = env({"push", "/root/envs/llm", "h1,h2", "--to", kThere, "--json"});
  ASSERT_EQ(second.exit_code, 0) << second;
  const base::Json json = json_of(second);
  for (const base::Json& host : json.value("hosts", base::Json::array())) {
    EXPECT_EQ(host.value("files", 0), 10) << second;
    EXPECT_EQ(host["verified"].value("findings", base::Json::array()).size(), 0U) << second;
  }
  EXPECT_EQ(say("h1", "cat '" + there + "/etc-file'"), "home=" + there + "\n");
  Outcome third = env({"push", "/root/envs/llm", "h1,h2", "--to", kThere});
  EXPECT_HAS(third.out, "h[1-2]: everything was there");

  // What is gone here goes there.
  say("ctl", "cd /root/envs/llm && rm lib/new1 etc-file");
  EXPECT_EQ(env({"push", "/root/envs/llm", "h1", "--to", kThere}).exit_code, 0);
  EXPECT_EQ(say("h1", "cd '" + there + "' && ls lib/new1 etc-file 2>/dev/null; true"), "");
  EXPECT_EQ(leftovers(5s), "");
}

TEST_F(Env, VerifyAndDiffNameTheHosts) {
  start({.hosts = 3});
  environment();
  ASSERT_EQ(env({"push", "/root/envs/llm", "h1,h2,h3", "--to", kThere}).exit_code, 0);
  const std::string there = kThere;
  Outcome same = env({"diff", kThere, "h1,h2,h3"});
  EXPECT_EQ(same.exit_code, 0) << same;
  EXPECT_HAS(same.out, "h[1-3]: fingerprint ");
  say("h2", "cd '" + there + "'/lib/python*/site-packages && d=$(ls -d *.dist-info | head -n 1) && mv $d ${d%%-*}-99.dist-info && rm '" +
                there + "/bin/python'");
  Outcome differ = env({"diff", kThere, "-H", "h1,h2,h3"});
  EXPECT_EQ(differ.exit_code, 1) << differ;
  EXPECT_HAS(differ.out, "h[1,3]: fingerprint ");
  EXPECT_HAS(differ.out, "99 (h2)");
  Outcome verified = env({"verify", kThere, "-H", "h1,h2,h3"});
  EXPECT_EQ(verified.exit_code, 3) << verified;
  EXPECT_HAS(verified.out, "h[1,3]\n  " + there + ": nothing is wrong");
  EXPECT_HAS(verified.out, "h2: exit code 3\n  error  ENV-SHEBANG: ");
  Outcome missing = env({"diff", "/root/nowhere", "h1,h2"});
  EXPECT_EQ(missing.exit_code, 3) << missing;
  EXPECT_HAS(missing.out, "h[1-2]: error: no such folder: \"/root/nowhere\"");
}

TEST_F(Env, AnOldEnvironmentStaysWholeUntilTheNewOneIsThere) {
  start({.hosts = 1});
  environment(6);
  ASSERT_EQ(env({"push", "/root/envs/llm", "h1", "--to", kThere}).exit_code, 0);
  const std::string before = tree("h1", kThere), there = kThere;
  for (int i = 0; i < 6; ++i) say("ctl", "head -c 2000000 /dev/urandom > /root/envs/llm/lib/part" + std::to_string(i));
  say("ctl", "echo 'home=/root/envs/llm' > /root/envs/llm/etc-file");
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process killed = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  ASSERT_TRUE(wait_parts("h1", 2));
  say("h1", "pkill -KILL -f 'phalanx.*agent'");
  Outcome first = killed.finish(30s);
  EXPECT_NE(first.exit_code, 0) << first;
  EXPECT_HAS(first.err, "hint: ");
  const std::string clean = "rm -rf /root/x; mkdir /root/x && mv '" + there + "/.phalanx-push.part' /root/x/";
  say("h1", clean);
  EXPECT_EQ(tree("h1", kThere), before) << "the old one is untouched";
  say("h1", "mv /root/x/.phalanx-push.part '" + there + "/'");
  Process cut = env_later({"push", "/root/envs/llm", "h1", "--to", kThere, "--connect-timeout", "3s"});
  ASSERT_TRUE(wait_parts("h1", 4));
  ASSERT_TRUE(cluster().cut("h1").ok());
  EXPECT_NE(cut.finish(60s).exit_code, 0);
  ASSERT_TRUE(cluster().heal("h1").ok());
  Process changed = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  ASSERT_TRUE(wait_parts("h1", 4));
  Outcome rest = changed.finish(60s);
  ASSERT_EQ(rest.exit_code, 0) << rest;
  EXPECT_EQ(say("h1", "cat '" + there + "/etc-file'"), "home=" + there + "\n");
  EXPECT_EQ(say("h1", "sha256sum < '" + there + "/lib/part5'"), say("ctl", "sha256sum < /root/envs/llm/lib/part5"));
}

TEST_F(Env, ADiskThatFillsMeanwhileKeepsTheOldEnvironmentAndTheRestFollows) {
  Options options{.hosts = 1};
  options.host.resize(1);
  options.host[0].home.size_kib = 80 << 10;
  start(options);
  environment();
  ASSERT_EQ(env({"push", "/root/envs/llm", "h1", "--to", kThere}).exit_code, 0);
  const std::string before = tree("h1", kThere), there = kThere;
  for (int i = 0; i < 8; ++i) say("ctl", "head -c 2000000 /dev/urandom > /root/envs/llm/lib/part" + std::to_string(i));
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process filled = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  ASSERT_TRUE(wait_parts("h1", 2));
  say("h1", "cat /dev/zero > /root/fill 2> /dev/null; true");
  Outcome full = filled.finish(60s);
  EXPECT_EQ(full.exit_code, 3) << full;
  EXPECT_HAS(full.err, "error: h1: the disk of " + there + "/.phalanx-push.part is full: ");
  EXPECT_HAS(full.err, "hint: ");
  say("h1", "rm /root/fill; mkdir /root/x && mv '" + there + "/.phalanx-push.part' /root/x/");
  EXPECT_EQ(tree("h1", kThere), before) << "the old one is untouched";
  say("h1", "mv /root/x/.phalanx-push.part '" + there + "/'");
  Outcome rest = env({"push", "/root/envs/llm", "h1", "--to", kThere, "--json"});
  ASSERT_EQ(rest.exit_code, 0) << rest;
  EXPECT_LE(json_of(rest)["hosts"][0].value("bytes", 99'000'000), 12'500'000) << "two parts of eight were there";
  EXPECT_EQ(say("h1", "cd '" + there + "/lib' && cat part* | sha256sum"), say("ctl", "cd /root/envs/llm/lib && cat part* | sha256sum"));
}

TEST_F(Env, AChangeMeanwhileIsSaidAndTwoPushesTakeTurns) {
  start({.hosts = 1});
  environment(4);
  say("ctl", "find /root/envs -exec touch -h -d '1 hour ago' {} +");
  ASSERT_EQ(env({"verify", "/root", "-H", "h1"}).exit_code, 2);  // no environment; but agent and phalanx-env are there now
  ASSERT_TRUE(cluster().throttle("h1", "40mbit").ok());
  Process changed = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  ASSERT_TRUE(wait_parts("h1", 1));
  say("ctl", "echo other > /root/envs/llm/lib/part3");
  Outcome outcome = changed.finish(60s);
  EXPECT_EQ(outcome.exit_code, 3) << outcome;
  EXPECT_HAS(outcome.err, "error: h1: lib/part3 was changed while it was copied");
  EXPECT_HAS(outcome.err, "hint: run the same command again; files that have arrived are not sent again");
  const std::string there = kThere;
  EXPECT_EQ(say("h1", "ls -A '" + there + "'"), ".phalanx-push.part\n") << "no file is there before all are";
  say("ctl", "head -c 3000000 /dev/urandom > /root/envs/llm/lib/part3");
  Process one = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  Process two = env_later({"push", "/root/envs/llm", "h1", "--to", kThere});
  Outcome a = one.finish(60s), b = two.finish(60s);
  EXPECT_EQ(a.exit_code, 0) << a;
  EXPECT_EQ(b.exit_code, 0) << b;
  EXPECT_NE(a.out.find("everything was there") == std::string::npos, b.out.find("everything was there") == std::string::npos) << a << b;
  EXPECT_EQ(say("h1", "cd '" + there + "/lib' && cat part* | sha256sum"), say("ctl", "cd /root/envs/llm/lib && cat part* | sha256sum"));
}

TEST_F(Env, RefusesBeforeAnythingIsSent) {
  Options options{.hosts = 2};
  options.host.resize(2);
  options.host[1].home.size_kib = 24 << 10;
  start(options);
  environment();
  Outcome none = env({"push", "/root/envs/llm"});
  EXPECT_EQ(none.exit_code, 2) << none;
  EXPECT_HAS(none.err, "env push needs hosts");
  Outcome longer = env({"push", "/root/envs/llm", "h1", "--to", "/root/" + std::string(250, 'x')});
  EXPECT_EQ(longer.exit_code, 2) << longer;
  EXPECT_HAS(longer.err, "cannot be moved to /root/xxx");
  EXPECT_HAS(longer.err, "bin/where: a path in it has no room to grow");
  say("ctl", "head -c 45000000 /dev/urandom > /root/envs/llm/lib/large");
  Outcome full = env({"push", "/root/envs/llm", "h1,h2", "--to", kThere});
  EXPECT_EQ(full.exit_code, 3) << full;
  EXPECT_HAS(full.err, "error: h2: the disk of ");
  EXPECT_HAS(full.err, "has too little free space: ");
  EXPECT_HAS(full.out, "h1\n  ");
  EXPECT_HAS(full.out, "nothing is wrong");
}

}  // namespace
