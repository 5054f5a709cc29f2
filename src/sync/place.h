// The far side of `phalanx push`: contents arrive in TARGET/.phalanx-push.part (sync/incoming.h). When all have, each takes its place by a
// rename, so that every file is at any time the old one or the new one, whole. What was begun then is finished even if the launcher
// leaves.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "sync/incoming.h"
#include "sync/target.h"

namespace phalanx::sync {

class Placer : public Incoming {
 public:
  // store: opened in the target. mode: of the target, if it was made. remove: what earlier pushes have put there, nobody has changed, and
  // the list no longer has. Error: a folder stands where the list has a file, or the other way round; too little space.
  static base::Result<std::unique_ptr<Placer>> begin(Store store, Target target, Listing manifest, uint32_t mode, bool remove);
  ~Placer() override;

  base::Result<bool> build(size_t most) override;
  size_t built() const override { return done_; }
  std::string path() const override { return target_.path; }

  size_t removed() const override { return removed_; }  // files and links
  size_t stayed() const override { return stayed_; }

 private:
  enum class Todo : uint8_t { kNothing, kMake, kTouch };  // kTouch: only mode and time
  Placer(Store store, Target target, Listing manifest, uint32_t mode, bool remove)
      : Incoming(std::move(store), std::move(manifest)), target_(std::move(target)), mode_(mode), remove_(remove) {}

  base::Status plan();
  base::Status plan_entry(size_t index, const EntryView* old, const Seen& seen);
  base::Status plan_mounts(size_t index);
  bool is_mounted(std::string_view path);
  base::Status plan_removals();
  bool may_give_way(std::string_view path, bool folder);
  bool all_as_pushed(int folder, const std::string& path) const;
  base::Error changed_kind(std::string_view path, bool is_folder) const;                       // is_folder: what is there
  static const EntryView* find(const std::vector<EntryView>& entries, std::string_view path);  // null: it has none
  const EntryView* recorded(std::string_view path) const;
  bool is_listed(const EntryView& entry) const;  // as a folder, or as something else

  enum class Moment { kPending, kRemoved };  // before anything changes; as soon as everything that goes is gone
  base::Status step(size_t at);
  base::Status check_arrived(size_t index);
  base::Status write_pending();
  base::Status remove_one(size_t b);
  base::Status make(size_t index);
  base::Status make_file(size_t index, int folder, const std::string& name);
  base::Status finish_folder(size_t index);
  base::Status finish();
  base::Status remove_incoming();
  base::Status write_merged(Moment moment);
  base::Status arrived(uint32_t entry, const os::Fd& file) override;
  base::Result<int> folder_of(std::string_view path, std::string& name);  // valid until the next call
  bool look(std::string_view path, struct stat& s);                       // false: it is not there
  base::Error target_error(const char* doing, std::string_view path, int error_number) const;

  Target target_;
  uint32_t mode_;
  bool remove_;
  Record record_;                                      // of the earlier pushes
  std::vector<Todo> todo_;                             // per entry
  std::vector<Seen> seen_;                             // per entry
  std::vector<bool> old_blobs_;                        // per entry: its content was there before this session
  std::vector<bool> ready_;                            // per entry: its content came with its mode and time
  std::unordered_set<std::string_view> missing_;       // folders of the list that are not there before the push
  std::unordered_set<std::string_view> mounted_;       // folders of the list that are on another file system
  std::unordered_map<std::string_view, size_t> uses_;  // by content: places it has yet to take
  std::vector<size_t> gone_;                           // positions in record_ that the list no longer has
  size_t done_ = 0, removed_ = 0, stayed_ = 0;
  bool placing_ = false, over_ = false;
  bool kinds_change_ = false;  // what the record on disk has at some path is of another kind than what comes
  os::Fd last_folder_;
  std::string last_path_;
};

}  // namespace phalanx::sync
