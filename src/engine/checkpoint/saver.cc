#include "engine/checkpoint/saver.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>

#include "base/try.h"
#include "base/unicode.h"
#include "os/clock.h"
#include "os/files.h"

namespace phalanx::engine::checkpoint {
namespace {

constexpr size_t kMaxUntold = 16;  // outcomes nobody asked for
constexpr int kNice = 10;          // training goes first where cores are scarce

// The thread takes no signals: those are the training loop's.
std::thread start_quietly(auto body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(body);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

base::Result<std::unique_ptr<Saver>> Saver::open(SaverOptions options) {
  if (options.rank < 0 || options.rank >= options.world)
    return base::fail(base::ErrorKind::kConfig, fmt::format("rank {} is out of range for {} ranks", options.rank, options.world));
  if (options.token.empty()) return base::fail(base::ErrorKind::kConfig, "a Saver needs a token: the same text on all ranks of one run");
  Removals removed;
  if (options.rank == 0) {
    if (auto made = os::make_folders(options.folder, 0755); !made.ok()) return cannot_tell(std::move(made).error());
    TRY(claim(options.folder, options.token, options.run));
    TRY(clean_leftovers(options.folder, options.token, 0, &removed));
  }
  std::unique_ptr<Saver> saver(new Saver(std::move(options)));
  saver->removed_at_start_ = std::move(removed);
  saver->thread_ = start_quietly([raw = saver.get()] { raw->run(); });
  return saver;
}

Saver::~Saver() {
  interrupt_.raise();
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Saver::busy() {
  std::lock_guard lock(mutex_);
  return task_.has_value();
}

bool Saver::idle_within(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return !task_; });
}

std::optional<SaveOutcome> Saver::poll() {
  std::lock_guard lock(mutex_);
  if (outcomes_.empty()) return std::nullopt;
  SaveOutcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

std::optional<SaveOutcome> Saver::wait() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !outcomes_.empty() || !task_; });
  }
  return poll();
}

base::Status Saver::save(SaveRequest request) {
  const SaveId id{options_.folder, request.step, options_.token, sequence_++, options_.world};
  {
    std::unique_lock lock(mutex_);
    if (task_ && options_.when_busy == WhenBusy::kRefuse) {
      base::Error refused = base::fail(base::ErrorKind::kTimeout, fmt::format("step {} is not saved", request.step))
                                .because(fmt::format("rank {} is still writing step {}", options_.rank, task_->request.step));
      lock.unlock();
      note_failure(id, options_.rank, base::fail(refused.kind, refused.cause));
      return refused;
    }
    changed_.wait(lock, [&] { return !task_; });
  }
  const os::Mono start = os::mono_now();
  request.pieces = copy(std::move(request.pieces));
  {
    std::lock_guard lock(mutex_);
    task_.emplace(Task{id, std::move(request), os::mono_now() - start});
  }
  changed_.notify_all();
  return base::ok();
}

// Into the memory of the copies before, where it fits: memory that was touched once costs no page faults again.
std::vector<Piece> Saver::copy(std::vector<Piece> pieces) {
  at::NoGradGuard no_grad;
  copies_.resize(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    const at::Tensor from = pieces[i].data;
    at::Tensor& to = copies_[i];
    if (!to.defined() || to.sizes() != from.sizes() || to.scalar_type() != from.scalar_type())
      to = at::empty(from.sizes(), from.options().device(at::kCPU).pinned_memory(from.is_cuda()).requires_grad(false));
    to.copy_(from);
    pieces[i].data = to;
  }
  return pieces;
}

void Saver::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return task_ || ending_; });
    if (!task_) return;
    lock.unlock();  // only this thread takes the task away
    SaveOutcome outcome = carry_out(task_->id, task_->request);
    outcome.copied = task_->copied;
    lock.lock();
    if (outcomes_.size() == kMaxUntold) outcomes_.pop_front();
    outcomes_.push_back(std::move(outcome));
    task_.reset();
    changed_.notify_all();
  }
}

SaveOutcome Saver::carry_out(const SaveId& id, const SaveRequest& request) {
  SaveOutcome outcome;
  outcome.step = request.step;
  const os::Mono start = os::mono_now();
  try {
    outcome.status = write(id, request, outcome);
  } catch (const std::exception& failure) {  // memory, or what a test's hook throws
    outcome.status = base::fail(base::ErrorKind::kInternal, "the checkpoint's writer failed").because(base::printable(failure.what(), 400));
  }
  outcome.finished = os::mono_now() - start;
  if (!outcome.status.ok()) {
    if (options_.rank != 0) note_failure(id, options_.rank, outcome.status.error());
    base::Error error = std::move(outcome.status).error();
    outcome.status =
        std::move(error).within(fmt::format("rank {} saved step {} to {}", options_.rank, request.step, base::quote(id.folder, 400)));
  }
  return outcome;
}

base::Status Saver::write(const SaveId& id, const SaveRequest& request, SaveOutcome& outcome) {
  const os::Mono start = os::mono_now();
  if (options_.rank == 0) TRY(clean_leftovers(id.folder, id.token, id.sequence, &outcome.removals));
  TRY_ASSIGN(FileRecord shard, write_shard(id, options_.rank, {request.pieces, request.rank_state}, interrupt_, options_.stage));
  outcome.bytes = shard.bytes;
  outcome.written = os::mono_now() - start;
  if (options_.rank != 0) return base::ok();
  const FinishOptions how{request.common_state, options_.keep, request.best, options_.deadline};
  TRY_ASSIGN(Finished finished, finish(id, how, interrupt_, options_.stage));
  outcome.path = finished.path;
  outcome.trouble = finished.trouble;
  outcome.removals.insert(outcome.removals.end(), finished.removals.begin(), finished.removals.end());
  return base::ok();
}

void wait_together(comm::Group& group, Saver* saver) {
  constexpr std::chrono::milliseconds kPatience{100};
  for (int64_t writing = 1; writing > 0;) {
    const int64_t mine = saver && !saver->idle_within(kPatience) ? 1 : 0;
    writing = mine;
    if (group.world() == 1) continue;
    at::Tensor all = at::full({1}, mine, at::TensorOptions().dtype(at::kLong).device(group.device()));
    group.all_reduce(all, comm::Reduction::kMax, "the writers of checkpoints");
    writing = all.item<int64_t>();
  }
}

}  // namespace phalanx::engine::checkpoint
