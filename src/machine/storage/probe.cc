// Every path is looked at by children that may hang: one that looks, one that reads its content, one that writes. What does not answer
// is a fact about that path and a gap; the others are not delayed by it.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/json_fields.h"
#include "machine/probe.h"
#include "machine/storage/mounts.h"
#include "machine/storage/path_look.h"
#include "machine/storage/path_token.h"
#include "machine/storage/shared_memory.h"
#include "os/files.h"
#include "os/guarded.h"

namespace phalanx::machine {
namespace {

constexpr size_t kMostPaths = 64;
constexpr os::milliseconds kBesides{450};  // of the request's deadline: for reading the command, and for sending
constexpr os::milliseconds kLeast{200};
// A file server that fails over or is overloaded answers after seconds; only what stands still in one call for longer hangs. Where all is
// slow and moves, it is waited for.
constexpr os::milliseconds kHung{4000};
constexpr int kMostDeadlines = 7;

os::Patience patience(os::milliseconds deadline) {
  return {deadline, std::min(4 * deadline, std::max(deadline, kHung)), deadline * kMostDeadlines};
}

struct TokenAnswer {
  std::string token;
  int64_t entries = -1;
};
PHALANX_FIELDS(TokenAnswer, token, entries);
struct WriteAnswer {
  bool tested = false, done = false;
  std::string error;
  int64_t took_ns = 0;
};
PHALANX_FIELDS(WriteAnswer, tested, done, error, took_ns);

std::string clean(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The job's paths first: they keep their role if they are a standard one too.
class Wanted {
 public:
  void add(const std::string& path, const std::string& role, const std::string& named_by) {
    std::string at = clean(path);
    if (at.empty() || at[0] != '/' || at.size() > 4096 || facts.size() >= kMostPaths) return;
    auto known = std::find_if(facts.begin(), facts.end(), [&](const PathFact& f) { return f.path == at; });
    if (known != facts.end()) {
      if (role == "output" && known->role != "input") known->role = role, known->named_by = named_by;
      return;
    }
    PathFact fact;
    fact.path = at;
    fact.role = role;
    fact.named_by = named_by;
    facts.push_back(std::move(fact));
  }
  std::vector<PathFact> facts;
};

std::vector<PathFact> wanted(const ProbeRequest& r, const std::vector<NamedPath>& paths) {
  Wanted all;
  auto variable = [&](const char* name) {
    auto found = r.environment.find(name);
    return found == r.environment.end() ? std::string() : found->second;
  };
  for (const NamedPath& p : paths) all.add(p.path, p.role, p.named_by);
  for (const std::string& p : r.paths) all.add(p, "any", "--path");
  all.add(r.directory, "workdir", "the working directory");
  std::string temporary = variable("TMPDIR");
  all.add(temporary.empty() ? "/tmp" : temporary, "tmp", temporary.empty() ? "temporary files" : "TMPDIR");
  std::string home = variable("HOME");
  all.add(home, "home", "HOME");
  for (const char* name : {"XDG_CACHE_HOME", "HF_HOME", "HF_DATASETS_CACHE", "TRANSFORMERS_CACHE", "TORCH_HOME", "TRITON_CACHE_DIR",
                           "TORCH_EXTENSIONS_DIR", "TORCHINDUCTOR_CACHE_DIR"})
    all.add(variable(name), "cache", name);
  if (variable("TRITON_CACHE_DIR").empty() && !home.empty()) all.add(home + "/.triton", "cache", "Triton's cache");
  if (variable("XDG_CACHE_HOME").empty() && !home.empty()) all.add(home + "/.cache", "cache", "caches of HuggingFace and PyTorch");
  return std::move(all.facts);
}

bool wants_token(const PathFact& f) { return f.role == "input" || f.role == "any"; }
bool wants_write(const PathFact& f) { return f.role == "output" || f.role == "tmp" || f.role == "cache"; }

// The folder a file would be made in; never one that the job reads from.
WriteAnswer write_below(const std::string& root, const PathFact& fact, const std::set<std::string>& inputs) {
  WriteAnswer answer;
  std::string full = root + fact.path;
  std::string folder = nearest_folder(root, fact.path);
  if (inputs.count(folder) || (os::exists(full) && !os::is_folder(full))) {
    answer.tested = true;
    answer.done = ::access((os::exists(full) ? full : root + folder).c_str(), W_OK) == 0;
    if (!answer.done) answer.error = fmt::format("open: {}", std::strerror(errno));
    return answer;
  }
  WriteTest test = try_write(root + folder);
  return {true, test.done, test.error, test.took_ns};
}

struct Look {
  os::Guarded call;
  std::function<void(const base::Result<std::string>&)> take;
};

template <typename T>
std::optional<T> answer_of(const base::Result<std::string>& text) {
  if (!text.ok()) return std::nullopt;
  base::Result<base::Json> json = base::parse_json(*text);
  if (!json.ok()) return std::nullopt;
  base::Result<T> value = base::from_json<T>(*json);
  return value.ok() ? std::optional(std::move(value).value()) : std::nullopt;
}

// It may exist or not. A mount is known even where its file system does not answer.
void note_unseen(const std::vector<Mount>& mounts, const base::Error& error, PathFact& fact, StorageFacts& facts, std::vector<Gap>& gaps) {
  fact.error = error.message;
  gaps.push_back(gap_of("storage:" + fact.path, error));
  if (error.kind != base::ErrorKind::kTimeout) return;
  facts.hung.push_back(fact.path);
  if (const Mount* mount = mount_of(mounts, fact.path)) {
    fact.mount_point = mount->mount_point;
    fact.fs_type = mount->fs_type;
    fact.source = mount->source;
  }
}

std::vector<Look> looks(const std::string& root, const std::vector<Mount>& mounts, os::milliseconds deadline, StorageFacts& facts,
                        std::vector<Gap>& gaps) {
  std::set<std::string> inputs;
  for (const PathFact& f : facts.paths)
    if (f.role == "input") inputs.insert(f.path);
  std::vector<Look> all;
  for (PathFact& fact : facts.paths) {
    std::string name = "storage:" + fact.path;
    all.push_back({{name,
                    [&root, &mounts, fact] {
                      PathFact seen = fact;
                      look_at(root, mounts, seen);
                      return base::to_text(base::to_json(seen));
                    }},
                   [&fact, &mounts, &facts, &gaps](const base::Result<std::string>& text) {
                     if (!text.ok()) return note_unseen(mounts, text.error(), fact, facts, gaps);
                     if (std::optional<PathFact> seen = answer_of<PathFact>(text)) fact = std::move(*seen);
                   }});
  }
  // After all looks: their answers fill what those have made.
  for (PathFact& fact : facts.paths) {
    if (wants_token(fact))
      all.push_back({{"token:" + fact.path,
                      [&root, fact, deadline] {
                        ContentToken t = content_token(root + fact.path, deadline / 2);
                        return base::to_text(base::to_json(TokenAnswer{t.token, t.entries}));
                      }},
                     [&fact](const base::Result<std::string>& text) {
                       if (std::optional<TokenAnswer> t = answer_of<TokenAnswer>(text)) fact.token = t->token, fact.entries = t->entries;
                     }});
    if (wants_write(fact))
      all.push_back(
          {{"write:" + fact.path, [&root, fact, inputs] { return base::to_text(base::to_json(write_below(root, fact, inputs))); }},
           [&fact, &gaps](const base::Result<std::string>& text) {
             bool answered = std::none_of(gaps.begin(), gaps.end(), [&](const Gap& g) { return g.part == "storage:" + fact.path; });
             if (!text.ok() && answered) gaps.push_back(gap_of("storage:write " + fact.path, text.error()));
             std::optional<WriteAnswer> w = answer_of<WriteAnswer>(text);
             if (!w || !w->tested) return;
             fact.writable = w->done;
             fact.write_ns = w->took_ns;
             if (!w->done) fact.error = w->error;
           }});
  }
  return all;
}

void network_mounts(const std::string& root, const std::vector<Mount>& mounts, StorageFacts& facts) {
  constexpr size_t kMost = 256;
  auto known = [&](const std::string& at) {
    return std::any_of(facts.network_mounts.begin(), facts.network_mounts.end(),
                       [&](const NetworkMount& m) { return m.mount_point == at; });
  };
  for (const Mount& m : mounts) {
    if (!is_network_fs(m.fs_type) || facts.network_mounts.size() >= kMost || known(m.mount_point)) continue;
    Export e = split_source(m.source);
    facts.network_mounts.push_back({m.mount_point, m.fs_type, e.server, e.path, true});
  }
  base::Result<std::string> fstab = os::read_file(root + "/etc/fstab", 1 << 20);
  if (!fstab.ok()) return;
  for (const FstabEntry& f : parse_fstab(*fstab)) {
    if (!f.automatic || !is_network_fs(f.fs_type) || facts.network_mounts.size() >= kMost || known(f.mount_point)) continue;
    Export e = split_source(f.source);
    facts.network_mounts.push_back({f.mount_point, f.fs_type, e.server, e.path, false});
  }
}

}  // namespace

StorageFacts probe_storage(const ProbeRequest& r, const std::vector<NamedPath>& paths, std::vector<Gap>& gaps) {
  StorageFacts facts;
  base::Result<std::string> text = os::read_file(r.root + "/proc/self/mountinfo", 16 << 20);
  std::vector<Mount> mounts = text.ok() ? parse_mountinfo(*text) : std::vector<Mount>{};
  facts.paths = wanted(r, paths);
  network_mounts(r.root, mounts, facts);
  os::milliseconds deadline = std::max(r.deadline - kBesides, kLeast);
  std::vector<Look> all = looks(r.root, mounts, deadline, facts, gaps);
  std::vector<os::Guarded> calls;
  for (const Look& l : all) calls.push_back(l.call);
  calls.push_back({"storage:/dev/shm", [&r] {
                     StorageFacts shm;
                     look_at_shared_memory(r.root, shm);
                     return base::to_text(base::to_json(shm));
                   }});
  std::vector<base::Result<std::string>> answers = os::run_guarded(calls, patience(deadline));
  for (size_t i = 0; i < all.size(); ++i) all[i].take(answers[i]);
  if (std::optional<StorageFacts> shm = answer_of<StorageFacts>(answers.back())) {
    shm->paths = std::move(facts.paths);
    shm->network_mounts = std::move(facts.network_mounts);
    shm->hung = std::move(facts.hung);
    return std::move(*shm);
  }
  return facts;
}

}  // namespace phalanx::machine
