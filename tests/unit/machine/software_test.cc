// The Python environment, found without starting Python: real environments of this machine, made with its own venv and pyenv,
// and trees that stand in for conda, for moved environments and for hostile files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "base/json_fields.h"
#include "base/text.h"
#include "machine/software/parts.h"
#include "os/files.h"

namespace phalanx::machine {
namespace {

class Tree {
 public:
  Tree() {
    char name[] = "/tmp/phalanx-software-XXXXXX";
    if (::mkdtemp(name)) root = name;
  }
  ~Tree() {
    if (root.empty()) return;
    EXPECT_EQ(std::system(("rm -rf " + root).c_str()), 0);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void file(const std::string& path, std::string_view text, unsigned mode = 0644) const {
    std::string full = root + path;
    EXPECT_TRUE(os::make_folders(full.substr(0, full.rfind('/')), 0755).ok());
    EXPECT_TRUE(os::write_file_atomic(full, text, mode).ok());
  }
  void program(const std::string& path, std::string_view text) const { file(path, text, 0755); }
  void link(const std::string& path, const std::string& target) const {
    EXPECT_TRUE(os::make_folders((root + path).substr(0, (root + path).rfind('/')), 0755).ok());
    EXPECT_EQ(::symlink(target.c_str(), (root + path).c_str()), 0);
  }
  std::string root;
};

ProbeRequest request_for(const std::string& root, std::vector<std::string> argv, const std::string& path) {
  ProbeRequest request;
  request.root = root;
  request.argv = std::move(argv);
  request.directory = "/work";
  request.environment = {{"PATH", path}, {"HOME", "/home/me"}};
  return request;
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return text;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof(buffer), pipe)) text.append(buffer, n);
  return ::pclose(pipe) == 0 ? std::string(base::trim(text)) : "";
}

// A conda environment as conda leaves one: conda-meta, bin/python → python3.11, scripts with absolute first lines.
void make_conda(const Tree& tree, const std::string& prefix, const std::string& scripts_prefix) {
  tree.program(prefix + "/bin/python3.11",
               "\x7f"
               "ELF");
  tree.link(prefix + "/bin/python", "python3.11");
  tree.file(prefix + "/lib/python3.11/os.py", "");
  tree.file(prefix + "/conda-meta/python-3.11.9-h955ad1f_0.json", "{}");
  tree.program(prefix + "/bin/torchrun", "#!" + scripts_prefix + "/bin/python\nimport sys\n");
  std::string site = prefix + "/lib/python3.11/site-packages";
  tree.file(site + "/torch-2.4.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: torch\nVersion: 2.4.0\n\ntext");
  tree.file(site + "/torch/version.py",
            "from typing import Optional\n__version__ = '2.4.0+cu121'\ndebug = False\ncuda: Optional[str] = '12.1'\ngit_version = "
            "'d990'\nhip: Optional[str] = None\n");
}

TEST(Python, TheSystemsOwnIsReadAsItDescribesItself) {
  if (!os::exists("/usr/bin/python3")) GTEST_SKIP() << "no /usr/bin/python3";
  ProbeRequest request = request_for("", {"/usr/bin/python3", "train.py"}, "/usr/bin:/bin");
  auto begin = std::chrono::steady_clock::now();
  SoftwareFacts facts = probe_software(request);
  auto took = std::chrono::steady_clock::now() - begin;
  RecordProperty("probe_ms", static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(took).count()));
  EXPECT_EQ(facts.python, output_of("/usr/bin/python3 -c 'import platform; print(platform.python_version())'"));
  EXPECT_EQ(facts.interpreter, output_of("/usr/bin/python3 -c 'import os, sys; print(os.path.realpath(sys.executable))'"));
  EXPECT_EQ(facts.prefix, output_of("/usr/bin/python3 -c 'import sys; print(sys.prefix)'"));
  EXPECT_EQ(facts.environment_kind, "system");
  std::string folders;
  for (const std::string& folder : facts.site_packages) folders += folder + "\n";
  EXPECT_EQ(std::string(base::trim(folders)),
            output_of("cd / && env -i HOME=/home/me PATH=/usr/bin /usr/bin/python3 -c "
                      "'import sys; print(\"\\n\".join(p for p in sys.path if p.endswith(\"-packages\")))'"));
  std::string packages;
  for (const auto& [name, version] : facts.packages) packages += name + "==" + version + "\n";
  EXPECT_EQ(
      std::string(base::trim(packages)),
      output_of("cd / && env -i HOME=/home/me PATH=/usr/bin /usr/bin/python3 -c 'import re, importlib.metadata as m\n"
                "p = {}\nfor d in m.distributions(): p.setdefault(re.sub(\"[-_.]+\", \"-\", d.metadata[\"Name\"]).lower(), d.version)\n"
                "for n in sorted(p): print(n + \"==\" + p[n])'"));
}

TEST(Python, PyenvShimsLeadToTheVersionThatPyenvWouldStart) {
  std::string root = output_of("ls -d $HOME/.pyenv 2>/dev/null");
  if (root.empty()) GTEST_SKIP() << "no pyenv here";
  std::string versions = output_of("ls " + root + "/versions");
  int compared = 0;
  for (std::string_view line : base::split_lines(versions)) {
    std::string version(line);
    if (!version.starts_with("3.")) continue;
    ProbeRequest request = request_for("", {"python3", "-m", "torch.distributed.run"}, root + "/shims:/usr/bin:/bin");
    request.environment["PYENV_VERSION"] = version;
    SoftwareFacts facts = probe_software(request);
    EXPECT_EQ(facts.prefix, root + "/versions/" + version);
    std::string python = root + "/versions/" + version + "/bin/python3";
    EXPECT_EQ(facts.python, output_of(python + " -c 'import platform; print(platform.python_version())'"));
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "pyenv has no Python 3";
}

TEST(Python, AVenvAndItsUserSite) {
  Tree tree;
  std::string venv = tree.root + "/venv";
  if (std::system(("/usr/bin/python3 -m venv --without-pip " + venv + " 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "python3 has no venv";
  ProbeRequest request = request_for("", {"python", "train.py"}, venv + "/bin:/usr/bin:/bin");
  request.environment["HOME"] = tree.root + "/home";
  std::string minor = output_of(venv + "/bin/python -c 'import sys; print(\"%d.%d\" % sys.version_info[:2])'");
  tree.file("/home/.local/lib/python" + minor + "/site-packages/numpy-1.0.dist-info/METADATA", "Name: numpy\nVersion: 1.0\n");
  tree.file("/venv/lib/python" + minor + "/site-packages/numpy-2.0.dist-info/METADATA", "Name: numpy\nVersion: 2.0\n");
  SoftwareFacts facts = probe_software(request);
  EXPECT_EQ(facts.environment_kind, "venv");
  EXPECT_EQ(facts.prefix, venv);
  EXPECT_EQ(facts.python, output_of(venv + "/bin/python -c 'import platform; print(platform.python_version())'"));
  EXPECT_EQ(facts.user_site, "") << "a venv without system packages has no user site";
  EXPECT_EQ(facts.packages["numpy"], "2.0");
  EXPECT_EQ(facts.packages.size(), 1u);

  std::string config = *os::read_file(venv + "/pyvenv.cfg", 4096);
  tree.file("/venv/pyvenv.cfg", base::replace_all(config, "include-system-site-packages = false", "include-system-site-packages = true"));
  facts = probe_software(request);
  EXPECT_EQ(facts.packages["numpy"], "2.0");
  EXPECT_EQ(facts.user_site, tree.root + "/home/.local/lib/python" + minor + "/site-packages");
  ASSERT_FALSE(facts.hidden.empty());
  EXPECT_EQ(facts.hidden[0].version, "2.0") << "the venv's own comes before the user site";
  EXPECT_EQ(facts.hidden[0].hidden_version, "1.0");
  std::string folders;
  for (const std::string& folder : facts.site_packages) folders += folder + "\n";
  EXPECT_EQ(std::string(base::trim(folders)),
            output_of("cd / && env -i HOME=" + tree.root + "/home " + venv +
                      "/bin/python -c 'import sys; print(\"\\n\".join(p for p in sys.path if p.endswith(\"-packages\")))'"));
}

TEST(Python, AMovedVenvHasScriptsThatLeadElsewhere) {
  Tree tree;
  std::string venv = tree.root + "/old";
  if (std::system(("/usr/bin/python3 -m venv --without-pip " + venv + " 2>/dev/null").c_str()) != 0) GTEST_SKIP() << "python3 has no venv";
  tree.program("/old/bin/torchrun", "#!" + venv + "/bin/python3\nprint('hello')\n");
  tree.program("/old/bin/tool", "#!/usr/bin/env python3\n");
  SoftwareFacts facts = probe_software(request_for("", {"torchrun", "x.py"}, venv + "/bin:/usr/bin:/bin"));
  EXPECT_TRUE(facts.program_error.empty()) << facts.program_error;
  EXPECT_FALSE(facts.bad_first_line);
  EXPECT_TRUE(facts.shebangs.empty());
  ASSERT_EQ(std::rename(venv.c_str(), (tree.root + "/new").c_str()), 0);
  EXPECT_NE(std::system((tree.root + "/new/bin/torchrun 2>/dev/null").c_str()), 0) << "the kernel refuses it too";
  facts = probe_software(request_for("", {"torchrun", "x.py"}, tree.root + "/new/bin"));
  EXPECT_NE(facts.program_error.find(venv + "/bin/python3"), std::string::npos) << facts.program_error;
  EXPECT_TRUE(facts.bad_first_line);
  EXPECT_TRUE(facts.assumed);
  EXPECT_EQ(facts.prefix, tree.root + "/new");
  ASSERT_EQ(facts.shebangs.size(), 1u);
  EXPECT_EQ(facts.shebangs[0].script, tree.root + "/new/bin/torchrun");
  EXPECT_EQ(facts.shebangs[0].why, "does not exist");
}

TEST(Python, ACondaTreeUnderARoot) {
  Tree tree;
  make_conda(tree, "/opt/conda/envs/llm", "/opt/conda/envs/llm");
  SoftwareFacts facts = probe_software(request_for(tree.root, {"torchrun", "--nnodes", "2", "x.py"}, "/opt/conda/envs/llm/bin:/bin"));
  EXPECT_EQ(facts.program, "/opt/conda/envs/llm/bin/torchrun");
  EXPECT_EQ(facts.program_error, "");
  EXPECT_EQ(facts.interpreter, "/opt/conda/envs/llm/bin/python3.11");
  EXPECT_EQ(facts.environment_kind, "conda");
  EXPECT_EQ(facts.python, "3.11.9");
  EXPECT_EQ(facts.packages["torch"], "2.4.0");
  EXPECT_EQ(facts.torch_cuda, "12.1");
  EXPECT_EQ(facts.torch_git, "d990");
  EXPECT_FALSE(facts.fingerprint.empty());
  EXPECT_TRUE(facts.shebangs.empty());
}

TEST(Python, WrappersAndFirstLinesLeadToTheSameInterpreter) {
  Tree tree;
  make_conda(tree, "/env", "/env");
  const std::string elf =
      "\x7f"
      "ELF";
  tree.program("/usr/bin/env", elf);
  for (const char* wrapper : {"env", "nice", "numactl", "timeout", "nohup", "taskset", "bash"})
    tree.program(std::string("/bin/") + wrapper, elf);
  tree.program("/env/bin/with_env", "#!/usr/bin/env python\n");
  tree.program("/env/bin/with_split", "#!/usr/bin/env -S python -u\n");
  tree.program("/env/bin/long", "#!/bin/sh\n'''exec' \"/env/bin/python\" \"$0\" \"$@\"\n' '''\nimport re\n");
  tree.link("/usr/local/bin/linked", "../../../env/bin/torchrun");
  std::vector<std::vector<std::string>> commands = {{"python", "-m", "torch.distributed.run", "x.py"},
                                                    {"torchrun", "x.py"},
                                                    {"with_env"},
                                                    {"with_split"},
                                                    {"long"},
                                                    {"linked"},
                                                    {"env", "-u", "B", "A=1", "torchrun"},
                                                    {"env", "A=1", "B=2", "python"},
                                                    {"nice", "-n", "5", "torchrun"},
                                                    {"numactl", "--cpunodebind=0", "-m", "0", "python"},
                                                    {"timeout", "-k", "5", "1h", "torchrun"},
                                                    {"nohup", "taskset", "-c", "0-3", "nice", "python"},
                                                    {"/env/bin/torchrun"},
                                                    {"../env/bin/torchrun"}};
  for (const auto& argv : commands) {
    SoftwareFacts facts = probe_software(request_for(tree.root, argv, "/env/bin:/usr/local/bin:/bin"));
    EXPECT_EQ(facts.interpreter, "/env/bin/python3.11") << base::join(std::span<const std::string>(argv), " ");
    EXPECT_FALSE(facts.assumed);
  }
  SoftwareFacts shell = probe_software(request_for(tree.root, {"bash", "train.sh"}, "/env/bin:/bin"));
  EXPECT_TRUE(shell.assumed);
  EXPECT_EQ(shell.prefix, "/env");
  tree.program("/env/bin/phalanx-train", elf);
  EXPECT_EQ(probe_software(request_for(tree.root, {"phalanx-train"}, "/env/bin:/bin")).interpreter, "");
  EXPECT_NE(probe_software(request_for(tree.root, {"no-such"}, "/env/bin:/bin")).program_error, "");
  EXPECT_EQ(probe_software(request_for(tree.root, {}, "/env/bin:/bin")).prefix, "/env");
  EXPECT_EQ(probe_software(request_for(tree.root, {"conda", "run", "-p", "/env", "python", "x.py"}, "/bin")).prefix, "/env");
}

TEST(Python, EditableInstallsAreFoundInAllFourForms) {
  Tree tree;
  make_conda(tree, "/env", "/env");
  std::string site = "/env/lib/python3.11/site-packages";
  tree.file(site + "/llamafactory-0.9.dist-info/direct_url.json",
            R"({"dir_info": {"editable": true}, "url": "file:///home/me/LLaMA%20Factory"})");
  tree.file(site + "/plain-1.0.dist-info/direct_url.json", R"({"dir_info": {}, "url": "file:///gone/plain"})");
  tree.file(site + "/__editable__.mine-1.0.pth", "/src/mine/src\n");
  tree.file(site + "/__editable___other_1_0_finder.py",
            "MAPPING: dict[str, str] = {'other': '/src/other/other', 'more': '/src/other/more'}\n");
  tree.file(site + "/easy-install.pth", "/src/eggs/old\n");
  tree.file(site + "/linked.egg-link", "/src/linked\n.\n");
  tree.file("/src/mine/src/mine.py", "");
  std::map<std::string, bool> found;
  for (const Editable& e : probe_software(request_for(tree.root, {"python"}, "/env/bin")).editables)
    found[e.package + " " + e.path] = e.exists;
  std::map<std::string, bool> expected = {{"llamafactory /home/me/LLaMA Factory", false},
                                          {"mine /src/mine/src", true},
                                          {"other /src/other/other", false},
                                          {"more /src/other/more", false},
                                          {"old /src/eggs/old", false},
                                          {"linked /src/linked", false}};
  EXPECT_EQ(found, expected);
}

TEST(Python, LocksThatNobodyHoldsAreStale) {
  Tree tree;
  std::string folder = "/cache/torch_extensions/py311_cu121/";
  struct utimbuf old = {::time(nullptr) - 3600, ::time(nullptr) - 3600};
  for (const char* name : {"fused_adam", "held", "young"}) {
    tree.file(folder + name + "/lock", "");
    if (name == std::string_view("young")) continue;
    ASSERT_EQ(::utime((tree.root + folder + name + "/lock").c_str(), &old), 0);
  }
  FILE* holder = std::fopen((tree.root + folder + "held/lock").c_str(), "r");
  ASSERT_NE(holder, nullptr);
  ProbeRequest request = request_for("", {}, "");
  request.environment["XDG_CACHE_HOME"] = tree.root + "/cache";
  SoftwareFacts facts;
  read_extension_locks(Rooted(""), request, facts);
  std::fclose(holder);
  ASSERT_EQ(facts.stale_locks.size(), 1u);
  EXPECT_EQ(facts.stale_locks[0], tree.root + folder + "fused_adam/lock");
}

TEST(Variables, SecretsStayWhereTheyAre) {
  Tree tree;
  tree.file("/home/me/.netrc", "machine api.wandb.ai login user password verysecret\n");
  ProbeRequest request = request_for(tree.root, {}, "/bin");
  request.environment = {{"HOME", "/home/me"},
                         {"NCCL_DEBUG", "INFO"},
                         {"WANDB_API_KEY", "verysecret"},
                         {"HF_TOKEN", "verysecret"},
                         {"TOKENIZERS_PARALLELISM", "false"},
                         {"https_proxy", "http://me:verysecret@proxy:3128/"},
                         {"WANDB_BASE_URL", "https://me:verysecret@wandb.example"},
                         {"HF_ENDPOINT", "a=https://verysecret@one/x,https://me:very@secret@two"},
                         {"all_proxy", "me:verysecret@proxy:3128"},
                         {"TORCH_DB_PWD", "verysecret"},
                         {"MY_OWN", "1"}};
  SoftwareFacts facts = probe_software(request);
  EXPECT_EQ(facts.environment["NCCL_DEBUG"], "INFO");
  EXPECT_EQ(facts.environment["TOKENIZERS_PARALLELISM"], "false");
  EXPECT_EQ(facts.environment["https_proxy"], "http://proxy:3128/");
  EXPECT_EQ(facts.environment["WANDB_BASE_URL"], "https://wandb.example");
  EXPECT_EQ(facts.environment["HF_ENDPOINT"], "a=https://one/x,https://two");
  EXPECT_EQ(facts.environment["all_proxy"], "proxy:3128");
  EXPECT_EQ(facts.environment.count("MY_OWN"), 0u);
  EXPECT_EQ(facts.secrets_set, (std::vector<std::string>{"HF_TOKEN", "TORCH_DB_PWD", "WANDB_API_KEY"}));
  EXPECT_TRUE(facts.wandb_login);
  EXPECT_EQ(base::to_text(base::to_json(facts)).find("verysecret"), std::string::npos);
}

TEST(NcclConf, IsReadAsNcclReadsIt) {
  Tree tree;
  tree.file("/home/me/.nccl.conf",
            "# a comment\n # no comment=1\nNCCL_DEBUG = INFO\nNCCL_DEBUG=WARN\nNCCL_DEBUG=TRACE\nno equals\nNCCL_ALGO=\r\n");
  tree.file("/etc/nccl.conf", "NCCL_DEBUG=INFO\nNCCL_IB_HCA=mlx5\n=x\n");
  tree.file("/work/own.conf", "NCCL_NET=Socket");
  ProbeRequest request = request_for(tree.root, {}, "/bin");
  SoftwareFacts facts = probe_software(request);
  EXPECT_EQ(facts.nccl_conf_file, "/home/me/.nccl.conf, /etc/nccl.conf");
  std::map<std::string, std::string> expected = {{" # no comment", "1"}, {"NCCL_DEBUG ", " INFO"}, {"NCCL_DEBUG", "WARN"},
                                                 {"NCCL_ALGO", ""},      {"NCCL_IB_HCA", "mlx5"},  {"", "x"}};
  EXPECT_EQ(facts.nccl_conf, expected);
  request.environment["NCCL_CONF_FILE"] = "own.conf";
  facts = probe_software(request);
  EXPECT_EQ(facts.nccl_conf_file, "/work/own.conf, /etc/nccl.conf");
  EXPECT_EQ(facts.nccl_conf.count("NCCL_NET"), 1u);
  tree.file("/etc/nccl.conf", std::string(300'000, 'A') + "=1\nNCCL_NET=IB\n");
  EXPECT_LE(probe_software(request).nccl_conf.size(), 3u);
}

}  // namespace
}  // namespace phalanx::machine
