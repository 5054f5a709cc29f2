#include "engine/data/step_loader.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <system_error>

#include "base/try.h"
#include "base/unicode.h"

namespace phalanx::engine::data {
namespace {

// Signals are for the threads of the program, which act on them; a worker takes none.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

// What a set or libtorch throws must not end a worker thread, and with it the program.
template <typename T, typename F>
base::Result<T> without_throwing(const F& work) {
  try {
    return work();
  } catch (const std::exception& failure) {
    const std::string_view what = failure.what();
    return base::fail(base::ErrorKind::kJobFailed, "cannot assemble a batch")
        .because(base::printable(what.substr(0, what.find('\n')), 400));
  } catch (...) { return base::fail(base::ErrorKind::kJobFailed, "cannot assemble a batch").because("an unknown exception"); }
}

base::Status check_options(const LoaderOptions& options) {
  if (options.workers < 0 || options.prefetch <= 0 || options.accumulate <= 0)
    return base::fail(base::ErrorKind::kConfig, "the options of the loader are invalid")
        .because(fmt::format("workers is {}, prefetch {}, accumulate {}", options.workers, options.prefetch, options.accumulate))
        .with_hint("workers must be at least 0, the others at least 1");
  if (options.plan.rows % options.accumulate != 0)
    return base::fail(base::ErrorKind::kConfig, "the rows of a step cannot be divided into equal micro-batches")
        .because(fmt::format("{} rows, {} parts", options.plan.rows, options.accumulate));
  const PlanOptions& plan = options.plan;
  if (plan.rows <= 0) return base::fail(base::ErrorKind::kConfig, fmt::format("a step cannot have {} rows per rank", plan.rows));
  if (plan.rank < 0 || plan.rank >= plan.world)
    return base::fail(base::ErrorKind::kConfig, fmt::format("rank {} is out of range for {} ranks", plan.rank, plan.world));
  return base::ok();
}

}  // namespace

base::Result<std::unique_ptr<StepLoader>> StepLoader::create(std::shared_ptr<const Dataset> set, const LoaderOptions& options) {
  TRY(check_options(options));
  TRY_ASSIGN(auto planner, make_planner(*set, options.plan));
  return begin(ItemSource(std::move(set)), std::move(planner), options);
}

base::Result<std::unique_ptr<StepLoader>> StepLoader::create(std::shared_ptr<Stream> stream, const LoaderOptions& options) {
  TRY(check_options(options));
  TRY_ASSIGN(auto planner, make_planner(stream, options.plan));
  return begin(ItemSource(std::shared_ptr<const Stream>(std::move(stream))), std::move(planner), options);
}

base::Result<std::unique_ptr<StepLoader>> StepLoader::begin(ItemSource source, std::unique_ptr<Planner> planner,
                                                            const LoaderOptions& options) {
  std::unique_ptr<StepLoader> loader(new StepLoader(std::move(source), std::move(planner), options));
  TRY(loader->start_workers());
  return loader;
}

StepLoader::StepLoader(ItemSource source, std::unique_ptr<Planner> planner, const LoaderOptions& options)
    : source_(std::move(source)), planner_(std::move(planner)), options_(options), position_(planner_->position()) {}

StepLoader::~StepLoader() { stop_workers(); }

base::Status StepLoader::start_workers() {
  stopping_ = broken_ = false;
  planned_ = taken_ = 0;
  ring_.assign(static_cast<size_t>(std::max<int64_t>(1, options_.workers * options_.prefetch)), std::nullopt);
  NoSignals for_workers;
  try {
    for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& failure) {
    stop_workers();
    return base::fail(base::ErrorKind::kUnfit, fmt::format("cannot start {} threads for the data", options_.workers))
        .because(failure.code().message())
        .with_hint("set data.workers=0, or raise `ulimit -u`");
  }
  return base::ok();
}

void StepLoader::stop_workers() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void StepLoader::work() {
  std::unique_lock lock(mutex_);
  const auto room = static_cast<int64_t>(ring_.size());
  for (;;) {
    changed_.wait(lock, [&] { return stopping_ || (!broken_ && planned_ < taken_ + room); });
    if (stopping_) return;
    const int64_t number = planned_++;
    Slot& slot = ring_[static_cast<size_t>(number % room)];
    base::Result<StepPlan> plan = without_throwing<StepPlan>([&] { return planner_->next(); });
    if (!plan.ok()) {
      broken_ = true;
      slot.emplace(std::move(plan).error());
    } else {
      lock.unlock();
      base::Result<Made> made = without_throwing<Made>([&] { return make(*plan); });
      lock.lock();
      slot.emplace(std::move(made));
    }
    changed_.notify_all();
  }
}

base::Result<StepLoader::Made> StepLoader::make(const StepPlan& plan) const {
  Made made{.step = {.epoch = plan.epoch,
                     .step = plan.step,
                     .last_of_epoch = plan.last_of_epoch,
                     .rows_of_all = plan.rows_of_all,
                     .rows = static_cast<int64_t>(plan.items.size()),
                     .targets = 0,
                     .micro = {}},
            .after = plan.after};
  const auto most = static_cast<size_t>(options_.plan.rows / options_.accumulate);
  std::vector<Sample> samples;
  for (size_t first = 0; first < plan.items.size(); first += most) {
    const size_t many = std::min(most, plan.items.size() - first);
    samples.clear();
    for (size_t i = first; i < first + many; ++i) {
      TRY_ASSIGN(Sample sample, source_.load(plan.items[i], options_.plan.seed, plan.epoch));
      samples.push_back(std::move(sample));
    }
    auto batch = collate(samples, options_.padding);
    if (!batch.ok())
      return std::move(batch).error().within(fmt::format("assembling step {} of epoch {} from items {} … of {}", plan.step, plan.epoch,
                                                         source_.place(plan.items[first]), source_.name()));
    made.step.targets += batch->targets;
    made.step.micro.push_back(*std::move(batch));
  }
  return made;
}

base::Result<StepLoader::Made> StepLoader::take() {
  if (threads_.empty()) {
    TRY_ASSIGN(StepPlan plan, without_throwing<StepPlan>([&] { return planner_->next(); }));
    return without_throwing<Made>([&] { return make(plan); });
  }
  std::unique_lock lock(mutex_);
  Slot& slot = ring_[static_cast<size_t>(taken_) % ring_.size()];
  changed_.wait(lock, [&] { return slot.has_value(); });
  base::Result<Made> made = *std::move(slot);
  slot.reset();
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  return made;
}

base::Result<Step> StepLoader::next() {
  if (failed_) return *failed_;
  base::Result<Made> made = take();
  if (!made.ok()) {
    failed_ = made.error();
    return *failed_;
  }
  position_ = std::move(made->after);
  return std::move(made->step);
}

base::Json StepLoader::state() const { return planner_->state_of(position_); }

base::Status StepLoader::move(const std::function<base::Status()>& planner_moves) {
  stop_workers();
  const base::Json before = state();
  base::Status moved = planner_moves();
  if (moved.ok()) {
    position_ = planner_->position();
    failed_.reset();
  } else {
    TRY(planner_->restore(before));  // it was ahead of what has been handed out
  }
  TRY(start_workers());
  return moved;
}

base::Status StepLoader::restore(const base::Json& state) {
  return move([&] { return planner_->restore(state); });
}

base::Status StepLoader::start(int64_t epoch) {
  if (epoch < 0) return base::fail(base::ErrorKind::kConfig, fmt::format("invalid epoch {}", epoch));
  return move([&] { return planner_->start(epoch); });
}

}  // namespace phalanx::engine::data
