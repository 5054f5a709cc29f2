// Operations under way, finished strictly in the order in which they were started, as a Group asks for.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "engine/comm/group.h"

namespace engine::parallel {

class InOrder {
 public:
  using Ticket = uint64_t;

  // `then` runs when the operation is done and before any later one is waited for.
  Ticket push(std::unique_ptr<comm::Pending> operation, std::function<void()> then = {}) {
    waiting_.push_back({std::move(operation), std::move(then)});
    return pushed_++;
  }
  // Returns when the operation of this ticket, and all before it, are done.
  void finish(Ticket ticket) {
    while (finished_ <= ticket) {
      Entry entry = std::move(waiting_.front());
      waiting_.pop_front();
      ++finished_;
      entry.operation->wait();
      if (entry.then) entry.then();
    }
  }
  void finish_all() {
    if (pushed_ > finished_) finish(pushed_ - 1);
  }

 private:
  struct Entry {
    std::unique_ptr<comm::Pending> operation;
    std::function<void()> then;
  };
  std::deque<Entry> waiting_;
  Ticket pushed_ = 0, finished_ = 0;
};

}  // namespace engine::parallel
