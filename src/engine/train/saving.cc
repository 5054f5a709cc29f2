#include "engine/train/saving.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/checkpoint/shared_folder.h"

namespace phalanx::engine::train {
namespace {

constexpr std::string_view kParameters = "model";

std::string shape_text(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

base::Error other_model(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "the checkpoint belongs to another training")
      .because(std::move(why))
      .with_hint("use the config shown in its manifest.json under \"config\", or another `out` folder");
}

// The same tensors with the same shapes, for the parameters and each state of the optimizer.
base::Status same_tensors(const checkpoint::Reader& reader, const parallel::DataParallel& parallel, const optim::Optimizer& optimizer) {
  std::vector<std::string> kinds{std::string(kParameters)};
  for (const auto& state : optimizer.states()) kinds.push_back(state.name);
  size_t wanted = 0;
  for (const std::string& kind : kinds)
    for (const auto& [name, shape] : parallel.shapes()) {
      ++wanted;
      auto found = reader.tensors().find(kind + "." + name);
      if (found == reader.tensors().end()) return other_model(fmt::format("it has no tensor {}", base::quote(kind + "." + name)));
      if (found->second.shape != shape)
        return other_model(fmt::format("its {} has shape {}, the config's has shape {}", base::quote(found->first),
                                       shape_text(found->second.shape), shape_text(shape)));
    }
  if (reader.tensors().size() != wanted)
    return other_model(fmt::format("it has {} tensors; the config's model and optimizer have {}", reader.tensors().size(), wanted));
  return base::ok();
}

void add_pieces(std::vector<checkpoint::Piece>& pieces, std::string_view kind, const std::vector<parallel::Span>& spans) {
  for (const parallel::Span& span : spans) pieces.push_back({fmt::format("{}.{}", kind, span.name), span.shape, span.begin, span.data});
}

}  // namespace

base::Result<std::unique_ptr<Saving>> Saving::open(const Config& config, comm::Group& group, Progress& progress,
                                                   const checkpoint::Attempt& attempt) {
  std::unique_ptr<Saving> saving(new Saving(config, group, progress));
  saving->folder_ = config.out + "/checkpoints";
  const std::string token = checkpoint::common_token(group);
  TRY(saving->choose_layout(token));
  TRY(comm::agree(group, group.rank() == 0 ? saving->apply_policy(attempt) : base::ok(), "reading the checkpoints in `out`"));
  const bool writes = !saving->gathered_ || group.rank() == 0;
  checkpoint::SaverOptions options;
  options.folder = saving->folder_;
  options.rank = saving->gathered_ ? 0 : group.rank();
  options.world = saving->gathered_ ? 1 : group.world();
  options.token = token;
  options.run = attempt.run;
  options.keep = config.checkpoint.keep;
  // Rank 0 first: it clears away what crashed attempts left.
  for (const bool turn : {group.rank() == 0, group.rank() != 0}) {
    base::Status opened = base::ok();
    if (turn && writes) {
      auto saver = checkpoint::Saver::open(options);
      if (saver.ok()) saving->saver_ = *std::move(saver);
      else opened = std::move(saver.error());
      if (opened.ok())
        for (const std::string& removal : saving->saver_->removed_at_start()) progress.note(removal);
    }
    TRY(comm::agree(group, std::move(opened), "opening the folder of checkpoints"));
  }
  return saving;
}

base::Status Saving::choose_layout(const std::string& token) {
  gathered_ = config_.checkpoint.layout == "gathered" && group_.world() > 1;
  if (gathered_ || group_.world() == 1) return base::ok();
  base::Status shared = checkpoint::require_shared(group_, folder_, token);
  if (shared.ok() || shared.error().kind == base::ErrorKind::kInternal) return shared;  // kInternal: it could not be looked up
  if (config_.checkpoint.layout == "sharded")
    return std::move(shared.error()).with_hint("with checkpoint.layout=gathered, rank 0 writes everything");
  gathered_ = true;
  progress_.note(fmt::format("checkpoints: rank 0 writes them completely, because the ranks do not share the folder {}", folder_));
  return base::ok();
}

base::Status Saving::apply_policy(const checkpoint::Attempt& attempt) {
  TRY_ASSIGN(const std::optional<std::string> newest, checkpoint::latest(folder_));
  TRY_ASSIGN(const bool ours, checkpoint::began_earlier(folder_, attempt));
  if (!newest || ours || config_.checkpoint.existing == "resume") return base::ok();
  if (config_.checkpoint.existing == "replace") {
    checkpoint::Removals removals;
    base::Status removed = checkpoint::remove_all(folder_, &removals);
    for (const std::string& removal : removals) progress_.note(removal);
    return removed;
  }
  return base::fail(base::ErrorKind::kConfig, fmt::format("{} already holds a checkpoint", base::quote(config_.out)))
      .because(fmt::format("{} exists, and checkpoint.existing is refuse", base::quote(*newest)))
      .with_hint("checkpoint.existing=resume continues it, checkpoint.existing=replace removes it");
}

base::Status Saving::look(std::string& path) {
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  TRY_ASSIGN(checkpoint::Readable found, checkpoint::newest_readable(folder_, threads));
  for (const checkpoint::Skipped& skipped : found.skipped)
    progress_.note(fmt::format("skipped the checkpoint {}", skipped.path) + "\n" + skipped.error.render());
  chosen_ = std::move(found.reader);
  if (chosen_) path = chosen_->path();
  if (chosen_ || found.skipped.empty()) return base::ok();
  return base::fail(base::ErrorKind::kConfig, fmt::format("none of the checkpoints in {} can be read", base::quote(folder_)))
      .because("the checkpoints were skipped for the reasons above")
      .with_hint("checkpoint.existing=replace restarts from the first step and removes them");
}

base::Result<std::string> Saving::choose() {
  std::string path;
  base::Status looked = base::ok();
  if (group_.rank() == 0) looked = look(path);
  TRY(comm::agree(group_, std::move(looked), "looking for a checkpoint"));
  return comm::exchange(group_, path, "the choice of the checkpoint").front();
}

base::Result<base::Json> Saving::load(parallel::DataParallel& parallel, optim::Optimizer& optimizer) {
  TRY_ASSIGN(std::string path, choose());
  if (path.empty()) return base::Json();
  base::Json state;
  base::Status done = read(path, parallel, optimizer, state);
  chosen_.reset();
  if (!done.ok()) return std::move(done.error()).within(fmt::format("loading the checkpoint {}", base::quote(path)));
  parallel.loaded();
  asked_step_ = optimizer.steps_done;
  return state;
}

base::Status Saving::read(const std::string& path, parallel::DataParallel& parallel, optim::Optimizer& optimizer, base::Json& state) {
  base::Status mine = base::ok();
  std::optional<checkpoint::Reader> own;
  if (group_.rank() != 0 && !gathered_) {
    auto opened = checkpoint::Reader::open(path);
    if (opened.ok()) {
      own.emplace(*std::move(opened));
      own->trust();  // rank 0 has hashed every file
    } else {
      mine = std::move(opened.error());
    }
  }
  checkpoint::Reader* reader = group_.rank() == 0 ? chosen_.get() : own ? &*own : nullptr;
  if (reader) mine = same_tensors(*reader, parallel, optimizer);
  TRY(comm::agree(group_, std::move(mine), "comparing the checkpoint with the model"));

  auto take = [&](std::string_view kind, const std::vector<at::Tensor>& per_row) -> base::Status {
    auto fill = [&](const parallel::Span& span) {
      return reader->read(fmt::format("{}.{}", kind, span.name), span.begin, span.begin + span.data.numel(), span.data);
    };
    if (gathered_) return parallel.scattered(per_row, fill);
    for (const parallel::Span& span : parallel.spans(parallel::DataParallel::Cover::kHeld, per_row)) TRY(fill(span));
    return base::ok();
  };
  base::Status taken = take(kParameters, {});
  for (const optim::NamedState& one : optimizer.states())
    if (taken.ok()) taken = take(one.name, one.rows);
  TRY(comm::agree(group_, std::move(taken), "reading the checkpoint"));

  const std::string text = reader && group_.rank() == 0 ? base::to_text(reader->common_state()) : "";
  TRY_ASSIGN(state, base::parse_json(comm::exchange(group_, text, "the state in the checkpoint").front(), 1 << 20));
  optimizer.steps_done = base::get_int(state, "step").value_or(-1);
  if (optimizer.steps_done < 0) return base::fail(base::ErrorKind::kConfig, "the step at which it was saved is missing");
  return base::ok();
}

base::Status Saving::save(parallel::DataParallel& parallel, const optim::Optimizer& optimizer, base::Json state,
                          const std::optional<checkpoint::Best>& best) {
  if (asked_step_ == optimizer.steps_done) return base::ok();
  asked_step_ = optimizer.steps_done;
  if (!gathered_) checkpoint::wait_together(group_, saver_.get());
  checkpoint::SaveRequest request;
  request.step = optimizer.steps_done;
  state["step"] = optimizer.steps_done;
  request.common_state = std::move(state);
  request.best = best;
  auto add = [&](std::string_view kind, const std::vector<at::Tensor>& per_row) {
    add_pieces(request.pieces, kind, gathered_ ? parallel.gathered(per_row) : parallel.spans(parallel::DataParallel::Cover::kOwn, per_row));
  };
  add(kParameters, {});
  for (const optim::NamedState& one : optimizer.states()) add(one.name, one.rows);
  if (!saver_) return base::ok();
  if (base::Status taken = saver_->save(std::move(request)); !taken.ok()) progress_.note(taken.error().render());
  if (config_.checkpoint.background == "off") return finish();
  poll();
  return base::ok();
}

base::Status Saving::tell(const checkpoint::SaveOutcome& outcome) {
  for (const std::string& removal : outcome.removals) progress_.note(removal);
  if (!outcome.status.ok()) {
    base::Error error = outcome.status.error();
    return std::move(error).within(fmt::format("saving the checkpoint of step {}", outcome.step));
  }
  if (!outcome.path.empty()) progress_.note(fmt::format("saved {}", outcome.path));
  if (!outcome.trouble.empty()) progress_.note(outcome.trouble);
  return base::ok();
}

void Saving::poll() {
  while (saver_) {
    auto outcome = saver_->poll();
    if (!outcome) return;
    if (base::Status told = tell(*outcome); !told.ok()) progress_.note(told.error().render());
  }
}

base::Status Saving::finish() {
  base::Status last = base::ok();
  if (!gathered_) checkpoint::wait_together(group_, saver_.get());
  while (saver_) {
    auto outcome = saver_->wait();
    if (!outcome) break;
    last = tell(*outcome);
  }
  return last;
}

}  // namespace phalanx::engine::train
