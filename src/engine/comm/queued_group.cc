#include "engine/comm/queued_group.h"

#include <atomic>

#include "engine/comm/flight.h"

namespace phalanx::engine::comm {
namespace {

constexpr size_t kSmallBytes = 64 << 10;

}  // namespace

struct QueuedGroup::Task {
  Operation operation;
  std::function<void()> call;       // instead of an operation
  uint64_t flight = 0;              // its number in the ring
  std::atomic<bool> begun = false;  // read without the mutex by Pending::begun()
  bool done = false;
  std::exception_ptr failure;
};

class QueuedGroup::Waiting final : public Pending {
 public:
  Waiting(QueuedGroup& group, std::shared_ptr<Task> task) : group_(group), task_(std::move(task)) {}
  void wait() override { group_.wait_for(task_); }
  bool begun() const override { return task_->begun; }

 private:
  QueuedGroup& group_;
  std::shared_ptr<Task> task_;
};

QueuedGroup::QueuedGroup(Runs runs, const GroupOptions& options) : runs_(runs), flight_(options.flight), name_(options.name) {}

QueuedGroup::~QueuedGroup() { stop_thread(); }

void QueuedGroup::stop_thread() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Pending> QueuedGroup::start_all_reduce(at::Tensor tensor, Reduction reduction, std::string_view label) {
  Operation operation;
  operation.kind = Kind::kAllReduce;
  operation.reduction = reduction;
  operation.label = label;
  operation.output = operation.input = std::move(tensor);
  return submit(std::move(operation));
}

std::unique_ptr<Pending> QueuedGroup::start_reduce_scatter(at::Tensor output, at::Tensor input, std::string_view label) {
  Operation operation;
  operation.kind = Kind::kReduceScatter;
  operation.label = label;
  operation.output = std::move(output);
  operation.input = std::move(input);
  return submit(std::move(operation));
}

std::unique_ptr<Pending> QueuedGroup::start_all_gather(at::Tensor output, at::Tensor input, std::string_view label) {
  Operation operation;
  operation.kind = Kind::kAllGather;
  operation.label = label;
  operation.output = std::move(output);
  operation.input = std::move(input);
  return submit(std::move(operation));
}

std::unique_ptr<Pending> QueuedGroup::start_broadcast(at::Tensor tensor, int root, std::string_view label) {
  Operation operation;
  operation.kind = Kind::kBroadcast;
  operation.root = root;
  operation.label = label;
  operation.output = operation.input = std::move(tensor);
  return submit(std::move(operation));
}

void QueuedGroup::barrier(std::string_view name, std::chrono::milliseconds deadline) {
  Operation operation;
  operation.kind = Kind::kBarrier;
  operation.label = name;
  operation.deadline = deadline;
  submit(std::move(operation))->wait();
}

std::unique_ptr<Pending> QueuedGroup::submit(Operation operation) {
  operation.sequence = ++sequence_;
  check_call(operation, world(), device());
  auto task = std::make_shared<Task>();
  task->operation = std::move(operation);
  if (flight_) task->flight = flight_->scheduled(name_, task->operation);
  enqueue(task, bytes_of(task->operation) <= kSmallBytes);
  return std::make_unique<Waiting>(*this, std::move(task));
}

void QueuedGroup::in_order(std::function<void()> call) {
  auto task = std::make_shared<Task>();
  task->call = std::move(call);
  enqueue(task, /*may_hold=*/true);
  wait_for(task);
}

void QueuedGroup::enqueue(const std::shared_ptr<Task>& task, bool may_hold) {
  {
    std::lock_guard lock(mutex_);
    if (runs_ == Runs::kAtWait) {
      queue_.push_back(task);
    } else {
      const bool hold = may_hold && queue_.empty() && !held_;
      if (held_) queue_.push_back(std::move(held_));
      held_ = nullptr;
      if (hold) held_ = task;
      else queue_.push_back(task);
      if (!queue_.empty() && !thread_.joinable()) thread_ = std::thread([this] { work(); });
    }
  }
  if (runs_ == Runs::kInThread) changed_.notify_all();
}

void QueuedGroup::wait_for(const std::shared_ptr<Task>& task) {
  if (runs_ == Runs::kAtWait) {
    while (!task->done) {
      std::shared_ptr<Task> next = std::move(queue_.front());
      queue_.pop_front();
      run(*next);
    }
  } else {
    std::unique_lock lock(mutex_);
    if (held_ == task) {
      held_ = nullptr;  // the thread has nothing to do, and gets nothing before this returns
      lock.unlock();
      run(*task);
    } else if (!queue_.empty() && queue_.front() == task && !task->begun) {
      run_first(lock);  // the thread is still waking up: this one is awake
    } else {
      changed_.wait(lock, [&] { return task->done; });
    }
  }
  if (task->failure) std::rethrow_exception(task->failure);
}

void QueuedGroup::run(Task& task) {
  task.begun = true;
  std::exception_ptr failure;
  try {
    if (failure_) std::rethrow_exception(failure_);
    if (task.call) {
      task.call();
    } else {
      if (flight_) flight_->started(task.flight);
      carry_out(task.operation);
      if (flight_) flight_->completed(task.flight);
    }
  } catch (...) {
    if (flight_ && !failure_) flight_->write();
    failure = failure_ = std::current_exception();
  }
  std::lock_guard lock(mutex_);
  task.operation.output = task.operation.input = at::Tensor();  // the caller may free them from here on
  task.failure = failure;
  task.done = true;
}

void QueuedGroup::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return end_ || (!queue_.empty() && !queue_.front()->begun); });
    if (end_) return;
    run_first(lock);
  }
}

void QueuedGroup::run_first(std::unique_lock<std::mutex>& lock) {
  std::shared_ptr<Task> next = queue_.front();
  next->begun = true;
  lock.unlock();
  run(*next);
  lock.lock();
  queue_.pop_front();
  changed_.notify_all();
}

}  // namespace phalanx::engine::comm
