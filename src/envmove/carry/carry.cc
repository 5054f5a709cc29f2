// How: the list of files with their hashes is that of a push (sync/scan.h). Files that hold an old prefix are read, rewritten in memory and
// put aside, and their entries follow; then the records of hashes, of what was rewritten; then compiled Python whose source was rewritten
// goes from the list.
#include "envmove/carry/carry.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/try.h"
#include "envmove/below.h"
#include "envmove/bytecode.h"
#include "envmove/carry/clean_index.h"
#include "envmove/each_file.h"
#include "envmove/hashes.h"
#include "envmove/scan_file.h"
#include "envmove/votes.h"
#include "os/files.h"
#include "sync/hashes.h"
#include "sync/scan.h"

namespace phalanx::envmove {
namespace {

using base::ErrorKind;
using sync::Entry;

constexpr size_t kMostRecordBytes = 64 << 20;
constexpr size_t kShownProblems = 5;
constexpr size_t kTogether = 32;

// Where files of the environment may say it is: its path as typed, the same without links, and where it was before if nobody repaired it.
std::vector<std::string> places_of(const Environment& environment) {
  std::vector<std::string> places = old_prefixes(environment, vote(environment));
  places.push_back(environment.root);
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(environment.root.c_str(), nullptr), std::free);
  if (real) places.emplace_back(real.get());
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

// Files that lead to code outside of site-packages (packages.h), which is bundled and moves to another place than the rest. Directly in
// site-packages lie the finders of editable installs: each build tool names them otherwise.
bool is_pointer(std::string_view path) {
  const size_t slash = path.rfind('/');
  const std::string_view folder = path.substr(0, slash == std::string_view::npos ? 0 : slash), name = path.substr(slash + 1);
  return folder.ends_with("-packages") || path.ends_with(".egg-link") || name == "direct_url.json" || path.starts_with("bin/");
}

class Carrier {
 public:
  // sought: the places of `move`, and those of the bundle.
  Carrier(const Environment& environment, Move move, Move sought, Bundle bundle, AsideWriter& aside, CleanIndex& clean, Carried& out)
      : environment_(environment),
        move_(std::move(move)),
        bundle_(std::move(bundle)),
        sought_(std::move(sought)),
        aside_(aside),
        clean_(clean),
        out_(out) {
    for (const std::vector<Move>* moves : {&bundle_.moves, &bundle_.base_moves})
      bundled_.insert(bundled_.end(), moves->begin(), moves->end());
    std::stable_sort(bundled_.begin(), bundled_.end(), [](const Move& a, const Move& b) {
      return a.old_prefixes.front().size() > b.old_prefixes.front().size();  // one may lie below another
    });
  }

  base::Status rewrite_all(const Progress& progress) {
    std::vector<Entry>& entries = out_.manifest.entries;
    if (sought_.old_prefixes.empty()) return base::ok();
    std::atomic<size_t> done = 0;
    // Some at a time: those of one folder come one after the other, and its path is followed once.
    base::Status rewritten = each_of((entries.size() + kTogether - 1) / kTogether, [&](size_t part) -> base::Status {
      sync::Inside inside(environment_.root);
      for (size_t i = part * kTogether; i < std::min(entries.size(), (part + 1) * kTogether); ++i) {
        TRY(rewrite_one(entries[i], inside));
        if (progress) progress(++done, entries.size());
      }
      return base::ok();
    });
    TRY(rewritten);
    out_.rewritten = changes_.size();
    std::sort(out_.untouched.begin(), out_.untouched.end());
    return problems_.empty() ? base::ok() : base::Status(cannot_move());
  }

  base::Status correct_records() {
    const HashCorrections corrections(environment_, changes_);
    const std::vector<std::string> records = corrections.records();
    return each_of(records.size(), [&](size_t i) -> base::Status {
      Entry* entry = find(records[i]);
      if (!entry) return base::ok();
      const auto rewritten = records_.find(records[i]);
      std::string text;
      if (rewritten != records_.end()) {
        text = rewritten->second;
      } else {
        TRY_ASSIGN(Content content, read_below(environment_, records[i], kMostRecordBytes));
        text = std::move(content.data);
      }
      const std::optional<std::string> corrected = corrections.corrected(records[i], text);
      return corrected ? take(*entry, *corrected) : base::ok();
    });
  }

  void leave_out_stale_bytecode() {
    const StaleBytecode stale(changes_);
    std::erase_if(out_.manifest.entries, [&](const Entry& entry) { return entry.is_file() && stale.has(entry.path); });
  }

  void add_bundle() {
    std::vector<Entry>& entries = out_.manifest.entries;
    for (Entry& entry : bundle_.entries) entries.push_back(std::move(entry));
    auto before = [](const Entry& a, const Entry& b) { return a.path < b.path; };
    std::stable_sort(entries.begin(), entries.end(), before);
    auto same = [](const Entry& a, const Entry& b) { return a.path == b.path; };  // of the folder src
    entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
    out_.bundled = std::move(bundle_.bundled);
    out_.left_behind = std::move(bundle_.left_behind);
    out_.base = std::move(bundle_.base);
    out_.base_stays = bundle_.base_stays;
  }

 private:
  Entry* find(const std::string& path) {
    std::vector<Entry>& entries = out_.manifest.entries;
    auto at = std::lower_bound(entries.begin(), entries.end(), path, [](const Entry& e, const std::string& p) { return e.path < p; });
    return at != entries.end() && at->path == path ? &*at : nullptr;
  }

  base::Status take(Entry& entry, const std::string& content) {
    entry.size = content.size();
    TRY_ASSIGN(entry.content, aside_.put(content));
    return base::ok();
  }

  base::Result<os::Fd> open_file(const std::string& path, sync::Inside& inside) const {
    TRY_ASSIGN(std::optional<os::Fd> file, inside.open(path));
    return file ? base::Result<os::Fd>(std::move(*file)) : open_below(environment_, path);  // which says why it cannot
  }

  base::Status rewrite_one(Entry& entry, sync::Inside& inside) {
    if (entry.kind == sync::Kind::kLink) {
      std::string target = moved_path(entry.content, move_);
      // What leads into the environment leads there at its new place, also where that lies below what is bundled.
      const bool own = target != entry.content || is_within(target, move_.new_prefix);
      for (size_t i = 0; !own && i < bundled_.size() && target == entry.content; ++i) target = moved_path(target, bundled_[i]);
      if (target == entry.content) return base::ok();
      note({entry.path, true, 1, {}, {}, 0});
      entry.content = std::move(target);
      return base::ok();
    }
    if (!entry.is_file() || entry.path.ends_with(".pyc") || clean_.holds(entry.path, entry.content)) return base::ok();
    const std::string path = environment_.root + "/" + entry.path;
    auto at = environment_.managed.find(entry.path);
    const Managed* managed = at == environment_.managed.end() ? nullptr : &at->second;
    TRY_ASSIGN(const os::Fd opened, open_file(entry.path, inside));
    TRY_ASSIGN(const Scanned scanned, scan_file(opened, path, entry.path, managed, sought_));
    if (scanned.holds_old_prefix && scanned.file_class == FileClass::kOpaque) {
      std::lock_guard lock(mutex_);
      out_.untouched.push_back(entry.path);
    }
    if (!scanned.holds_old_prefix || scanned.file_class == FileClass::kOpaque) {
      if (!scanned.holds_old_prefix) clean_.add(entry.path, entry.content);
      return base::ok();
    }
    TRY_ASSIGN(const std::string data, os::read_rest(opened, path, kMostRewrittenBytes));
    Rewritten now = rewrite(entry.path, data, scanned.file_class, managed, move_);
    if (!now.problem.empty()) {
      std::lock_guard lock(mutex_);
      problems_.push_back({entry.path, std::move(now.problem)});
      return base::ok();
    }
    if (now.hits == 0) now.data = data;
    if (scanned.file_class == FileClass::kText && is_pointer(entry.path)) lead_to_bundle(now, bundle_.moves, is_url_file(entry.path));
    if (entry.path == "pyvenv.cfg") lead_to_bundle(now, bundle_.base_moves, false);
    if (now.hits == 0) {
      clean_.add(entry.path, entry.content);
      return base::ok();
    }
    note({entry.path, false, now.hits, base::sha256_hex(data), base::sha256_hex(now.data), now.data.size()});
    if (entry.path.ends_with(".dist-info/RECORD") || entry.path.starts_with("conda-meta/")) {
      std::lock_guard lock(mutex_);
      records_[entry.path] = now.data;
    }
    return take(entry, now.data);
  }

  // The environment may lie within the code that is bundled: its own place is no path of that.
  void lead_to_bundle(Rewritten& now, const std::vector<Move>& moves, bool urls) const {
    const std::string own(1, '\1');
    for (const Move& one : moves) {
      const bool within = move_.new_prefix.starts_with(one.old_prefixes.front() + "/");
      if (std::optional<Replaced> led = urls ? replace_urls(now.data, one, move_.new_prefix) : std::nullopt) {
        now.hits += led->hits;
        now.data = std::move(led->data);
        continue;
      }
      if (within && now.data.find(own) != std::string::npos) continue;
      Replaced led = replace_text(within ? base::replace_all(now.data, move_.new_prefix, own) : now.data, one);
      if (led.hits == 0) continue;
      now.hits += led.hits;
      now.data = within ? base::replace_all(led.data, own, move_.new_prefix) : std::move(led.data);
    }
  }

  void note(Change change) {
    std::lock_guard lock(mutex_);
    changes_.push_back(std::move(change));
  }

  base::Error cannot_move() {
    std::sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) { return a.path < b.path; });
    std::string why;
    for (size_t i = 0; i < std::min(problems_.size(), kShownProblems); ++i)
      why += (i > 0 ? "\n          " : "") + problems_[i].path + ": " + problems_[i].text;
    return base::fail(ErrorKind::kConfig,
                      base::counted("{} files of {} cannot be moved to {}", problems_.size(), environment_.root, move_.new_prefix))
        .because(why)
        .with_hint("choose a shorter path with --to, or the path it has here");
  }

  const Environment& environment_;
  Move move_;
  Bundle bundle_;
  std::vector<Move> bundled_;  // all moves of the bundle, the longest path first
  Move sought_;                // everything that is looked for
  AsideWriter& aside_;
  CleanIndex& clean_;
  Carried& out_;
  std::mutex mutex_;
  std::vector<Change> changes_;
  std::vector<Problem> problems_;
  std::unordered_map<std::string, std::string> records_;  // rewritten ones
};

}  // namespace

base::Result<std::string> AsideWriter::put(std::string_view content) {
  base::Sha256 hash;
  hash.update(content);
  std::string digest = hash.bytes();
  uint64_t at = 0;
  {
    std::lock_guard lock(mutex_);
    if (!aside_.at.emplace(digest, size_).second) return digest;
    at = size_;
    size_ += content.size();
  }
  while (!content.empty()) {
    const ssize_t size = ::pwrite(aside_.file.get(), content.data(), content.size(), static_cast<off_t>(at));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return base::system_error("write", "what is rewritten of the environment");
    content.remove_prefix(static_cast<size_t>(size));
    at += static_cast<uint64_t>(size);
  }
  return digest;
}

base::Result<Carried> carry(const Environment& environment, const CarryRequest& request, sync::Aside& aside,
                            const CarryProgress& progress) {
  TRY_ASSIGN(const bool interrupted, was_interrupted(environment.root));
  if (interrupted)
    return base::fail(ErrorKind::kConfig, fmt::format("an interrupted repair has left old and new paths mixed in {}", environment.root))
        .with_hint("phalanx env rehome " + base::shell_quote(environment.root));
  const std::string index = request.cache.empty() ? "" : request.cache + "/" + base::sha256_hex("env " + environment.root).substr(0, 32);
  TRY_ASSIGN(sync::Scan scan, sync::scan(environment.root, sync::kPushLimits, index, sync::Take::kEverything, progress.hashed));
  Carried out;
  out.manifest = std::move(scan.manifest);
  out.mode = scan.mode;
  const std::vector<std::string> places = places_of(environment);
  Move move{places, request.to};
  std::erase(move.old_prefixes, request.to);
  AsideWriter writer(aside);
  TRY_ASSIGN(Bundle bundle, bundle_editables(environment, places, request, writer));
  TRY(bundle_base(environment, places, request, writer, bundle));
  Move sought = move;
  for (const std::vector<Move>* moves : {&bundle.moves, &bundle.base_moves})
    for (const Move& one : *moves) sought.old_prefixes.push_back(one.old_prefixes.front());
  CleanIndex clean(sought.old_prefixes.empty() ? "" : request.cache, environment.root, sought);
  Carrier carrier(environment, std::move(move), std::move(sought), std::move(bundle), writer, clean, out);
  TRY(carrier.rewrite_all(progress.files));
  TRY(carrier.correct_records());
  carrier.leave_out_stale_bytecode();
  carrier.add_bundle();
  clean.save();
  return out;
}

}  // namespace phalanx::envmove
