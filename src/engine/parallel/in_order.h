// Operations under way, finished strictly in the order in which they were started, as a Group asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "engine/comm/group.h"

namespace phalanx::engine::parallel {

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
      const auto start = std::chrono::steady_clock::now();
      entry.operation->wait();
      waited_ += std::chrono::steady_clock::now() - start;
      if (entry.then) entry.then();
    }
  }
  void finish_all() {
    if (pushed_ > finished_) finish(pushed_ - 1);
  }
  // Whether the operation of this ticket has begun, or is done.
  bool begun(Ticket ticket) const { return ticket < finished_ || waiting_[ticket - finished_].operation->begun(); }
  double waited_seconds() const { return waited_.count(); }

 private:
  struct Entry {
    std::unique_ptr<comm::Pending> operation;
    std::function<void()> then;
  };
  std::deque<Entry> waiting_;
  Ticket pushed_ = 0, finished_ = 0;
  std::chrono::duration<double> waited_{0};
};

}  // namespace phalanx::engine::parallel
