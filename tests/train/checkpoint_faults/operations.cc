#include "operations.h"

#include <ATen/ops/arange.h>
#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <stdexcept>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/merge.h"
#include "engine/checkpoint/reader.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint::faulty {
namespace {

void put(const std::string& path, std::string_view text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string content(const std::string& path) { return os::read_file(path, 1 << 20).value(); }

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

}  // namespace

SaveRequest request(int64_t step) {
  SaveRequest r;
  r.step = step;
  r.pieces = {{"model.weight", {64}, 0, at::arange(static_cast<double>(step), static_cast<double>(step) + 64, at::kFloat)}};
  return r;
}

base::Status save(Saver& saver, SaveRequest what, Removals* removals) {
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

}  // namespace phalanx::engine::checkpoint::faulty
