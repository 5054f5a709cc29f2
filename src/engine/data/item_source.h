// Items of either kind of set behind one call, with whatever a set throws made into an Error. Any thread.
#pragma once

#include <memory>
#include <string>

#include "engine/data/dataset.h"

namespace phalanx::engine::data {

class ItemSource {
 public:
  explicit ItemSource(std::shared_ptr<const Dataset> set) : set_(std::move(set)) {}
  explicit ItemSource(std::shared_ptr<const Stream> stream) : stream_(std::move(stream)) {}

  // The item of a ticket (for a Dataset: of the index ticket.number). Its random numbers follow from seed, epoch and the ticket.
  // The error says which item of which set in its context; exceptions become errors (kJobFailed).
  base::Result<Sample> load(const Ticket& ticket, uint64_t seed, int64_t epoch) const;
  std::string name() const { return set_ ? set_->name() : stream_->name(); }
  std::string place(const Ticket& ticket) const { return set_ ? set_->place(ticket.number) : stream_->place(ticket); }

 private:
  std::shared_ptr<const Dataset> set_;
  std::shared_ptr<const Stream> stream_;
};

}  // namespace phalanx::engine::data
