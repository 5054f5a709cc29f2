// What every group does around an operation, whatever carries it out: the call is checked and numbered, and runs at its wait(), or
// before that in a thread of the group's own.
//
// At wait() costs no thread: right where the ranks' own cores do the work (shared memory). In a thread the bytes move while the rank
// computes: right where it mostly waits for a network. A small operation is not worth the way to the thread and back: as long as nothing
// else is under way it is held back for its own wait(). Of any size, whoever waits for it first carries it out if the thread has not begun.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "engine/comm/make_group.h"
#include "engine/comm/operation.h"

namespace phalanx::engine::comm {

class QueuedGroup : public Group {
 public:
  enum class Runs { kAtWait, kInThread };
  QueuedGroup(Runs runs, const GroupOptions& options);
  ~QueuedGroup() override;

  std::unique_ptr<Pending> start_all_reduce(at::Tensor tensor, Reduction reduction, std::string_view label) final;
  std::unique_ptr<Pending> start_reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) final;
  std::unique_ptr<Pending> start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) final;
  std::unique_ptr<Pending> start_broadcast(at::Tensor tensor, int root, std::string_view label) final;
  void barrier(std::string_view name, std::chrono::milliseconds deadline) final;

 protected:
  // Carries out one operation and returns when it is done; throws. Never two at once; in the order of their starts.
  virtual void carry_out(const Operation& operation) = 0;
  // Calls it when all operations that were started before are done, where they are carried out, and returns then. Throws what it throws.
  void in_order(std::function<void()> call);
  // Every subclass calls this first in its destructor: after it nothing calls carry_out.
  void stop_thread();

 private:
  struct Task;
  class Waiting;
  std::unique_ptr<Pending> submit(Operation operation);
  void enqueue(const std::shared_ptr<Task>& task, bool may_hold);
  void wait_for(const std::shared_ptr<Task>& task);
  void run(Task& task);
  void work();
  void run_first(std::unique_lock<std::mutex>& lock);  // of the queue; unlocked meanwhile

  const Runs runs_;
  const std::shared_ptr<FlightRing> flight_;
  const std::string name_;
  uint64_t sequence_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> queue_;  // at wait: not run yet; in a thread: the one that runs is in front
  std::shared_ptr<Task> held_;               // in a thread: the small one that nothing follows yet
  bool end_ = false;
  std::exception_ptr failure_;  // of the first operation that failed: the ranks may stand at different places now, so all later ones fail
  std::thread thread_;
};

}  // namespace phalanx::engine::comm
