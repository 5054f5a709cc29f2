// Python stacks read from outside, against what faulthandler writes in the process itself, on every Python that is installed.
#include "machine/python/frames.h"

#include <fcntl.h>
#include <glob.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "machine/small_files.h"
#include "os/clock.h"
#include "os/files.h"
#include "scratch.h"

using namespace phalanx;

namespace {

using namespace std::chrono_literals;
using Stack = std::vector<std::string>;  // "train.py:42 step", innermost first

// Threads that wait in all kinds of places; one of them writes what faulthandler knows, then waits too.
constexpr const char* kProgram = R"(
import ctypes, faulthandler, functools, os, queue, sys, threading, time
never = threading.Event()
def plain():
    never.wait()
def generator():
    for i in range(3):
        yield i
        never.wait(
            1000
        )
def consumer():
    total = 0
    for value in generator():
        total += value
def nested():
    class Inner:
        def method(self, *args):
            return [self.other(a) for a in args if
                    a]
        def other(self, a):
            if a > 1:

                time.sleep(1000)
            return a
    return Inner().method(1,
                          2, 3)
def from_c():
    return sorted([3, 1, 2], key=lambda value:
                  never.wait())
def callback():
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    def compare(a, b):
        never.wait()
        return 0
    numbers = (ctypes.c_int * 3)(1, 2, 3)
    ctypes.CDLL(None).qsort(numbers, 3, ctypes.sizeof(ctypes.c_int), kind(compare))
def reduced():
    functools.reduce(lambda a, b: queue.Queue().get(), [1, 2, 3])
def deep(n):
    if n == 0:
        never.wait()
    else:
        deep(n - 1)
def handler():
    try:
        raise ValueError
    except ValueError:
        with never._cond:
            pass
        try:
            pass
        finally:
            never.wait()
def far():
    code = "\n" * 70000 + "def distant():\n" + "    x = 1\n" * 400 + "    never.wait()\ndistant()\n"
    exec(compile(code, "far away.py", "exec"), globals())
def foreign():
    exec(compile("def f\u00fcnf():\n    never.wait()\nf\u00fcnf()\n", "caf\u00e9/\u6df1.py", "exec"), globals())
async def inner():
    never.wait()
async def outer():
    await inner()
def coroutine():
    outer().send(None)
for place in (plain, consumer, nested, from_c, callback, reduced, handler, far, foreign, coroutine, lambda: deep(40)):
    threading.Thread(target=place, daemon=True).start()
def tell():
    def places():
        return {thread: (id(f), f.f_lasti) for thread, f in sys._current_frames().items() if thread != threading.get_ident()}
    before, after = None, places()
    while before != after or len(after) != 12:
        time.sleep(0.03)
        before, after = after, places()
    with open(sys.argv[1] + ".part", "w") as file:
        faulthandler.dump_traceback(file, all_threads=True)
    os.rename(sys.argv[1] + ".part", sys.argv[1])
    never.wait()
threading.Thread(target=tell, daemon=True).start()
never.wait()
)";

// Runs deeper and back all the time.
constexpr const char* kBusy = R"(
import os, sys
def down(n):
    if n:
        down(n - 1)
    else:
        side()
def side():
    return len("x")
def up():
    os.close(os.open(sys.argv[1], os.O_CREAT))
    while True:
        down(20)
up()
)";

std::vector<std::string> pythons() {
  std::vector<std::string> found;
  std::set<std::string> seen;
  for (std::string pattern : {std::string("/usr/bin/python3.[0-9]*"), std::string("/usr/local/bin/python3.[0-9]*"),
                              os::environment_value("HOME") + "/.pyenv/versions/3.*/bin/python3.[0-9]*"}) {
    glob_t names{};
    if (::glob(pattern.c_str(), 0, nullptr, &names) == 0)
      for (size_t i = 0; i < names.gl_pathc; ++i) {
        std::string path = names.gl_pathv[i];
        uint32_t version = machine::python_version_in(path);
        if (!path.ends_with(machine::python_version_text(version)) || version < machine::kFirstPython || version > machine::kLastPython)
          continue;
        char* real = ::realpath(path.c_str(), nullptr);
        if (real && seen.insert(real).second) found.push_back(path);
        std::free(real);
      }
    ::globfree(&names);
  }
  return found;
}

class Program {
 public:
  Program(const std::string& python, const std::string& code, const std::string& folder) : told_(folder + "/told") {
    std::string script = folder + "/program.py";
    std::ofstream(script) << code;
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execl(python.c_str(), python.c_str(), "-S", script.c_str(), told_.c_str(), nullptr);
      ::_exit(127);
    }
    for (os::Mono end = os::mono_now() + 20s; os::mono_now() < end && ::access(told_.c_str(), F_OK) != 0;) ::usleep(2000);
  }
  ~Program() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  std::string told() const { return os::read_file(told_, 1 << 20).ok() ? *os::read_file(told_, 1 << 20) : ""; }
  base::Result<std::optional<machine::PythonStacks>> stacks(int memory = -1) const {
    std::string maps = *os::read_file(fmt::format("/proc/{}/maps", pid_), 8 << 20);
    return machine::python_stacks(pid_, machine::parse_maps(maps), memory, os::mono_now() + 2s);
  }

 private:
  std::string told_;
  pid_t pid_ = -1;
};

// faulthandler escapes what is not ASCII.
std::string escaped(const std::string& text) {
  std::string out;
  for (std::string_view rest = text; !rest.empty();) {
    base::Character c = base::first_character(rest);
    if (c.code_point < 0x80) out += static_cast<char>(c.code_point);
    else out += c.code_point < 0x100 ? fmt::format("\\x{:02x}", c.code_point) : fmt::format("\\u{:04x}", c.code_point);
    rest.remove_prefix(c.length);
  }
  return out;
}

std::vector<Stack> of_faulthandler(const std::string& text) {
  std::vector<Stack> stacks;
  bool current = false;
  for (std::string_view line : base::split_lines(text)) {
    if (line.starts_with("Thread ") || line.starts_with("Current thread ")) {
      current = line.starts_with("Current");
      if (!current) stacks.emplace_back();
    }
    size_t file = line.find("File \""), number = line.find("\", line "), in = line.find(" in ");
    if (current || file == std::string_view::npos || number == std::string_view::npos || in == std::string_view::npos) continue;
    stacks.back().push_back(
        fmt::format("{}:{} {}", line.substr(file + 6, number - file - 6), line.substr(number + 8, in - number - 8), line.substr(in + 4)));
  }
  std::sort(stacks.begin(), stacks.end());
  return stacks;
}

std::vector<Stack> of(const machine::PythonStacks& read) {
  std::vector<Stack> stacks;
  for (const machine::PythonThread& thread : read.threads) {
    Stack stack;
    for (const machine::PythonFrame& f : thread.frames)
      stack.push_back(fmt::format("{}:{} {}", escaped(f.file), f.line, escaped(f.function)));
    bool teller = std::any_of(stack.begin(), stack.end(), [](const std::string& s) { return s.ends_with(" tell"); });
    if (!teller) stacks.push_back(std::move(stack));
  }
  std::sort(stacks.begin(), stacks.end());
  return stacks;
}

TEST(PythonFrames, AreThoseOfFaulthandlerOnEveryPythonHere) {
  std::vector<std::string> all = pythons();
  if (all.empty()) GTEST_SKIP() << "no Python 3.8 to 3.14 here";
  for (const std::string& python : all) {
    SCOPED_TRACE(python);
    std::string folder = scratch::folder("python");
    Program program(python, kProgram, folder);
    base::Result<std::optional<machine::PythonStacks>> read = program.stacks();
    ASSERT_TRUE(read.ok()) << read.error().render();
    ASSERT_TRUE(read->has_value());
    EXPECT_EQ((*read)->version, machine::python_version_in(python));
    std::vector<Stack> expected = of_faulthandler(program.told());
    ASSERT_EQ(expected.size(), 12u) << program.told();
    std::vector<Stack> got = of(**read);
    ASSERT_EQ(got.size(), expected.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], expected[i]);
    // Each thread of Python is one of the process's, and no two are the same.
    std::set<int64_t> tids;
    std::vector<int64_t> real = machine::numbers_in(fmt::format("/proc/{}/task", program.pid()));
    for (const machine::PythonThread& thread : (*read)->threads) {
      EXPECT_EQ(thread.problem, "");
      EXPECT_EQ(std::count(real.begin(), real.end(), thread.tid), 1) << thread.tid;
      tids.insert(thread.tid);
      if (thread.tid == program.pid()) { EXPECT_EQ(thread.frames.back().function, "<module>"); }
    }
    EXPECT_EQ(tids.size(), (*read)->threads.size());
  }
}

TEST(PythonFrames, OfABusyProcessAreWholeOrNotTold) {
  for (const std::string& python : pythons()) {
    SCOPED_TRACE(python);
    int told = 0;
    std::string folder = scratch::folder("python");
    Program program(python, kBusy, folder);
    const os::Mono began = os::mono_now();
    // On a busy machine 60 looks may all come too late.
    for (int i = 0; i < 60 || (told == 0 && os::mono_now() - began < std::chrono::seconds(20)); ++i) {
      base::Result<std::optional<machine::PythonStacks>> read = program.stacks();
      if (!read.ok() || !read->has_value()) continue;
      const machine::PythonThread& thread = (*read)->threads.at(0);
      if (thread.frames.empty()) {
        EXPECT_NE(thread.problem, "");
        continue;
      }
      told += thread.frames.size() >= 2 ? 1 : 0;
      // module, up, then down any number of times, then side.
      Stack functions;
      for (const machine::PythonFrame& f : thread.frames) functions.push_back(f.function);
      std::reverse(functions.begin(), functions.end());
      EXPECT_EQ(functions.at(0), "<module>");
      for (size_t k = 1; k < functions.size(); ++k)
        EXPECT_EQ(functions[k], k == 1 ? "up" : k == 23 ? "side" : "down") << k << " of " << functions.size();
    }
    EXPECT_GT(told, 0);
  }
}

TEST(PythonFrames, ANotYetOrNoLongerReadableProcess) {
  std::string maps = *os::read_file("/proc/self/maps", 8 << 20);
  base::Result<std::optional<machine::PythonStacks>> none =
      machine::python_stacks(::getpid(), machine::parse_maps(maps), -1, os::mono_now() + 1s);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->has_value());  // this is no Python
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  std::vector<std::string> all = pythons();
  if (all.empty()) GTEST_SKIP() << "no Python 3.8 to 3.14 here";
  std::string folder = scratch::folder("python");
  Program program(all.front(), kProgram, folder);
  // A file opened by one who may is read by a child who may not.
  os::Fd memory = machine::open_memory(program.pid());
  ASSERT_TRUE(memory.valid());
  std::string text = *os::read_file(fmt::format("/proc/{}/maps", program.pid()), 8 << 20);
  pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(1);
    machine::ProcessMemory refused(program.pid(), -1), inherited(program.pid(), memory.get());
    char byte = 0;
    uint64_t somewhere = machine::parse_maps(text).at(0).begin;
    bool said =
        refused.problem().find("permission denied") != std::string::npos || refused.problem().find("ptrace_scope") != std::string::npos;
    ::_exit(said && !refused.read(somewhere, &byte, 1) && inherited.read(somewhere, &byte, 1) ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
