// Each system call of each operation on checkpoints fails once, in each way: no complete checkpoint is lost, nothing of others is touched,
// no lookup answers "none", and every error names the path.
#include <ATen/ops/arange.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/unicode.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/saver.h"
#include "faults.h"
#include "os/files.h"

namespace {

using namespace engine::checkpoint;
namespace fs = std::filesystem;

const std::vector<std::pair<int, const char*>> kFaults{{EIO, "EIO"},       {ESTALE, "ESTALE"}, {EACCES, "EACCES"},
                                                       {ENOSPC, "ENOSPC"}, {EINTR, "EINTR"},   {faults::kShort, "short count"}};

class Root {
 public:
  Root() : path_(fs::exists("/dev/shm") ? "/dev/shm/phalanx-faults-XXXXXX" : fs::temp_directory_path() / "phalanx-faults-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~Root() { fs::remove_all(path_); }
  std::string operator/(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void put(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string content(const std::string& path) { return os::read_file(path, 1 << 20).value(); }

SaveRequest request(int64_t step) {
  SaveRequest r;
  r.step = step;
  r.pieces = {{"model.weight", {64}, 0, at::arange(static_cast<double>(step), static_cast<double>(step) + 64, at::kFloat)}};
  return r;
}

base::Status save(Saver& saver, SaveRequest what, Removals* removals = nullptr) {
  TRY(saver.save(std::move(what)));
  SaveOutcome outcome = *saver.wait();
  if (removals) *removals = outcome.removals;
  return std::move(outcome.status);
}

std::unique_ptr<Saver> open_saver(const std::string& folder, const std::string& token, int64_t keep) {
  auto saver = Saver::open({.folder = folder, .token = token, .keep = keep, .deadline = std::chrono::milliseconds(300)});
  if (!saver.ok()) throw std::runtime_error(saver.error().render());
  return *std::move(saver);
}

// Checkpoints 1 (the best), 2 and 3; leftovers of a crash; another tool's folder; a merged model.
void furnish(const std::string& root) {
  const std::string folder = root + "/checkpoints";
  {
    auto saver = open_saver(folder, "first", 0);
    for (int64_t step : {1, 2, 3}) {
      SaveRequest r = request(step);
      if (step == 1) r.best = Best{1, "loss", 0.5};
      ASSERT_TRUE(save(*saver, std::move(r)).ok());
    }
  }
  put(folder + "/.saving-step-00000009.dead.0/shard-00000-of-00001.safetensors.tmp", "half");
  put(folder + "/.removing-step-00000000.1.1/DONE", "half");
  put(folder + "/step-00000100/model.pt", "another tool's");
  const Interrupt never;
  ASSERT_TRUE(merge({.checkpoint = folder + "/step-00000002", .folder = root + "/merged"}, never).ok());
}

// The steps whose checkpoints are whole: every byte is hashed.
std::set<int64_t> whole(const std::string& folder) {
  std::set<int64_t> steps;
  for (const auto& entry : fs::directory_iterator(folder)) {
    auto reader = Reader::open(entry.path());
    if (step_of(entry.path().filename().string()) && reader.ok() && reader->verify().ok()) steps.insert(reader->step());
  }
  return steps;
}

struct Operation {
  std::string name;
  std::function<base::Status(const std::string& root, Saver* saver)> act;
  std::set<int64_t> always = {1, 2, 3};  // whole afterwards, whatever happened
  bool with_saver = false;               // opened before the calls are watched
  int64_t keep = 0;
  bool exchange = true;
  // After it has ended; the complaint, or "".
  std::function<std::string(const std::string& root, const base::Status& status, const std::set<int64_t>& steps)> check = {};
};

base::Status expect_answer(bool right, const char* what) {
  return right ? base::ok() : base::fail(base::ErrorKind::kInternal, fmt::format("WRONG ANSWER from {}", what));
}

base::Status look(const std::string& folder) {
  TRY_ASSIGN(const std::vector<std::string> all, list(folder));
  TRY(expect_answer(all.size() == 3, "list"));
  TRY_ASSIGN(const std::optional<std::string> newest, latest(folder));
  TRY(expect_answer(newest == folder + "/step-00000003", "latest"));
  TRY_ASSIGN(const std::optional<Best> marked, best(folder));
  return expect_answer(marked && marked->step == 1, "best");
}

base::Status resume(const std::string& folder) {
  TRY_ASSIGN(const Readable found, newest_readable(folder));
  return expect_answer(found.reader && found.reader->step() == 3, "newest_readable");
}

base::Status merge_into(const std::string& root, const char* name, bool replace) {
  const Interrupt never;
  TRY(merge({.checkpoint = root + "/checkpoints/step-00000003", .folder = root + "/" + name, .replace = replace}, never));
  return base::ok();
}

std::vector<Operation> operations() {
  auto checkpoints = [](const std::string& root) { return root + "/checkpoints"; };
  std::vector<Operation> all;
  all.push_back({"list", [=](auto& root, Saver*) { return look(checkpoints(root)); }});
  all.push_back({"resume", [=](auto& root, Saver*) { return resume(checkpoints(root)); }});
  all.push_back({"start", [=](auto& root, Saver*) -> base::Status {
                   TRY(Saver::open({.folder = checkpoints(root), .token = "second"}));
                   return base::ok();
                 }});
  all.push_back({.name = "save, publish, mark, prune",
                 .act =
                     [](auto&, Saver* saver) {
                       SaveRequest r = request(4);
                       r.best = Best{4, "loss", 0.25};
                       return save(*saver, std::move(r));
                     },
                 .always = {3},
                 .with_saver = true,
                 .keep = 2,
                 .check = [](auto&, const base::Status& status, const std::set<int64_t>& steps) -> std::string {
                   if (status.ok() && !steps.contains(4)) return "it was saved and is not there";
                   if (!steps.contains(4) && steps != std::set<int64_t>{1, 2, 3}) return "old ones were removed without a new one";
                   return steps.contains(4) || !status.ok() ? "" : "lost";
                 }});
  for (const bool exchange : {true, false})
    all.push_back({.name = exchange ? "save the same step" : "save the same step in two renames",
                   .act = [](auto&, Saver* saver) { return save(*saver, request(3)); },
                   .with_saver = true,
                   .exchange = exchange});
  all.push_back({.name = "replace",
                 .act = [=](auto& root, Saver*) { return remove_all(checkpoints(root)); },
                 .always = {},
                 .check = [](auto&, const base::Status& status, const std::set<int64_t>& steps) -> std::string {
                   return status.ok() && !steps.empty() ? "it said that all are removed" : "";
                 }});
  all.push_back({"merge", [](auto& root, Saver*) { return merge_into(root, "new", false); }});
  all.push_back({.name = "merge in place of an older model", .act = [](auto& root, Saver*) { return merge_into(root, "merged", true); }});
  return all;
}

// The rest of a run's folder after an operation that met a fault, and whether the next start finds everything.
std::string complaint(const Operation& operation, const std::string& root, const base::Status& status) {
  const std::string folder = root + "/checkpoints";
  if (!status.ok()) {
    const std::string said = status.error().render();
    if (said.find(root) == std::string::npos || said.find("WRONG ANSWER") != std::string::npos) return "it said: " + said;
  }
  if (content(folder + "/step-00000100/model.pt") != "another tool's") return "another tool's folder was touched";
  const std::string model = root + "/merged/model.safetensors";
  if (fs::file_size(model) < 256) return "the merged model is damaged";
  if (fs::exists(root + "/new") && fs::file_size(root + "/new/model.safetensors") < 256) return "the new model is damaged";

  if (operation.check)
    if (std::string wrong = operation.check(root, status, whole(folder)); !wrong.empty()) return wrong;
  auto next = open_saver(folder, "next", 0);
  std::set<int64_t> steps = whole(folder);
  if (!std::includes(steps.begin(), steps.end(), operation.always.begin(), operation.always.end())) return "a complete checkpoint is lost";
  if (base::Status saved = save(*next, request(5)); !saved.ok()) return "the next save failed: " + saved.error().render();
  if (newest_readable(folder).value().reader->step() != 5) return "the next start does not find the newest";
  const std::vector<std::string> names = names_in(folder).value();
  for (const std::string& name : names)
    if (name.starts_with(".saving-") || name.starts_with(".removing-") || name.starts_with(".replaced-")) return "left: " + name;
  return "";
}

faults::Seen carry_out(const Operation& operation, const std::string& pattern, const std::string& root, int at, int error,
                       base::Status& status) {
  fs::remove_all(root);
  fs::copy(pattern, root, fs::copy_options::recursive);
  std::unique_ptr<Saver> saver;
  if (operation.with_saver) saver = open_saver(root + "/checkpoints", "second", operation.keep);
  faults::refuse_exchange(!operation.exchange);
  faults::watch(root, at, error);
  status = operation.act(root, saver.get());
  saver.reset();
  faults::Seen seen = faults::stop();
  faults::refuse_exchange(false);
  return seen;
}

TEST(StorageFaults, EachCallFailsOnceInEachWay) {
  Root root;
  const std::string pattern = root / "pattern", place = root / "run";
  furnish(pattern);
  int injected = 0, refused = 0;
  std::map<std::string, int> by_call;
  for (const Operation& operation : operations()) {
    base::Status status = base::ok();
    const faults::Seen plain = carry_out(operation, pattern, place, -1, 0, status);
    ASSERT_TRUE(status.ok()) << operation.name << ": " << status.error().render();
    ASSERT_EQ(complaint(operation, place, status), "") << operation.name;
    ASSERT_GT(plain.calls.size(), 5u) << operation.name;
    int here = 0;
    for (int at = 0; at < static_cast<int>(plain.calls.size()); ++at)
      for (const auto& [error, name] : kFaults) {
        const faults::Call& call = plain.calls[static_cast<size_t>(at)];
        if (error == faults::kShort && !call.moves_bytes) continue;
        const bool hit = carry_out(operation, pattern, place, at, error, status).injected;
        const std::string wrong = complaint(operation, place, status);
        EXPECT_EQ(wrong, "") << operation.name << ", call " << at << ": " << call.name << " " << call.path << ": " << name;
        if (!hit) continue;
        ++here;
        ++by_call[call.name];
        refused += !status.ok();
      }
    injected += here;
    fmt::print("{}: {} calls, {} faults\n", operation.name, plain.calls.size(), here);
    EXPECT_GE(here, 5 * static_cast<int>(plain.calls.size()) * 9 / 10) << operation.name << ": the calls differ from run to run";
  }
  std::string calls;
  for (const auto& [name, count] : by_call) calls += fmt::format(" {} {}", name, count);
  fmt::print("{} faults injected, {} operations refused;{}\n", injected, refused, calls);
  EXPECT_GT(injected, 1000);
  EXPECT_GT(refused, 500);
  EXPECT_LT(refused, injected) << "EINTR and short counts are no reason to give up";
}

bool is_locked(const std::string& owner) {
  const int fd = open(owner.c_str(), O_RDWR | O_CLOEXEC);
  struct flock whole{};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  const bool locked = fcntl(fd, F_OFD_SETLK, &whole) != 0 && errno == EAGAIN;
  close(fd);
  return locked;
}

// No other attempt can claim the folder between "am I still the owner?" and the rename.
TEST(Owner, IsLockedFromTheQuestionToTheRename) {
  Root root;
  const std::string folder = root / "checkpoints", saving = folder + "/.saving-";
  auto saver = open_saver(folder, "first", 0);
  int renames = 0, claims = 0;
  faults::before_each([&](const faults::Call& call) {
    const bool publishes = call.path.starts_with(saving) && call.to == folder + "/step-00000001";
    const bool claiming = call.name == "ftruncate";
    renames += publishes;
    claims += claiming;
    if (!publishes && !claiming) return;
    EXPECT_TRUE(is_locked(folder + "/.owner")) << call.name;
  });
  faults::watch(folder, -1, 0);
  EXPECT_TRUE(save(*saver, request(1)).ok());
  EXPECT_TRUE(save(*saver, request(1)).ok());
  EXPECT_TRUE(claim(folder, "second").ok());
  faults::stop();
  faults::before_each({});
  EXPECT_GE(renames, 2);
  EXPECT_EQ(claims, 1);
  EXPECT_FALSE(is_locked(folder + "/.owner"));
}

}  // namespace
