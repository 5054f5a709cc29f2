// The far side of one copy: what is missing is asked for (sync/incoming.h), and the tree is built beside its place and renamed into it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sync/incoming.h"

namespace phalanx::sync {

class Receiver : public Incoming {
 public:
  // name: of the copy to be made.
  static base::Result<Receiver> begin(Store store, std::string name, Listing manifest);

  base::Result<bool> build(size_t most) override;
  size_t built() const override { return made_; }
  std::string path() const override { return store_.copy_path(name_); }

 private:
  Receiver(Store store, std::string name, Listing manifest) : Incoming(std::move(store), std::move(manifest)), name_(std::move(name)) {}
  void plan();
  base::Status start_tree();
  base::Status make(size_t index);
  base::Result<int> folder_of(std::string_view path, std::string& name);  // valid until the next call

  std::string name_;
  // Of the free copy, when it is used: which of our entries it has already.
  std::optional<Listing> before_;
  std::vector<Seen> before_seen_;
  std::vector<int64_t> same_as_;  // per entry: its position in before_, or -1
  bool started_ = false;
  os::Fd copy_, tree_, last_folder_;
  std::string last_path_;
  std::vector<Seen> seen_;
  size_t made_ = 0;
};

}  // namespace phalanx::sync
