#include "engine/finetune/checkpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/fingerprint.h"
#include "engine/tuning/adapter.h"
#include "engine/tuning/write_tensors.h"
#include "os/files.h"

namespace phalanx::engine::finetune {
namespace {

constexpr std::string_view kPrefix = "checkpoint-", kLeftover = ".saving-";
constexpr const char* kStateFile = "/phalanx_state.safetensors";
constexpr const char* kFormat = "phalanx fine-tuning 1";

base::Error unusable(const std::string& folder, std::string why) {
  return base::fail(base::ErrorKind::kConfig, fmt::format("cannot resume from {}", base::quote(folder, 400))).because(std::move(why));
}

// Steps of the checkpoints in a folder, ascending.
base::Result<std::vector<int64_t>> steps_in(const std::string& folder) {
  TRY_ASSIGN(const auto names, os::names_if_present(folder));
  std::vector<int64_t> out;
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.starts_with(kPrefix)) continue;
    auto step = base::parse_int(std::string_view(name).substr(kPrefix.size()), 0, INT64_MAX);
    if (step.ok()) out.push_back(*step);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string parent_of(std::string folder) {
  while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
  const std::filesystem::path parent = std::filesystem::path(folder).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string folder_of(const std::string& output_dir, int64_t step) { return fmt::format("{}/{}{}", output_dir, kPrefix, step); }

base::Status remove_one(const std::string& folder) {
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  if (error) return base::fail(base::ErrorKind::kUnfit, fmt::format("cannot remove {}", folder)).because(error.message());
  return base::ok();
}

std::string gone_name(const std::string& output_dir, int64_t step) { return fmt::format("{}/{}old-{}", output_dir, kLeftover, step); }

// Gives those that are too many another name, so that a kill leaves no half of a checkpoint; returns these names.
// `saved`: the step just saved, which stays; those of later steps are of an earlier training, which was left for this one: they go first.
// `best`: the step of one that goes last of all but the newest; 0: none.
base::Result<std::vector<std::string>> take_out(const std::string& output_dir, int64_t limit, int64_t saved = INT64_MAX, int64_t best = 0) {
  TRY_ASSIGN(auto steps, steps_in(output_dir));
  std::stable_partition(steps.begin(), steps.end(), [&](int64_t step) { return step > saved; });
  if (auto found = std::find(steps.begin(), steps.end(), best); found != steps.end() && found + 1 != steps.end())
    std::rotate(found, found + 1, steps.end() - 1);
  std::vector<std::string> out;
  const auto surplus = static_cast<int64_t>(steps.size()) - limit;
  for (int64_t i = 0; i < surplus; ++i) {
    const int64_t step = steps[static_cast<size_t>(i)];
    const std::string from = folder_of(output_dir, step), gone = gone_name(output_dir, step);
    TRY(remove_one(gone));
    if (std::rename(from.c_str(), gone.c_str()) != 0) return base::system_error("rename", from);
    out.push_back(gone);
  }
  return out;
}

base::Status remove_all(const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) TRY(remove_one(folder));
  return base::ok();
}

// With the lock on output_dir's owner: nobody claims it between the question and the last rename.
base::Result<std::vector<std::string>> publish(const Checkpoints& where, const std::string& name, int64_t step, const History& history) {
  TRY_ASSIGN(const checkpoint::OwnerLock lock, checkpoint::OwnerLock::take(where.output_dir));
  TRY(checkpoint::still_owner(where.output_dir, where.token));
  TRY(finish_folder(where.output_dir, name, where.token));
  if (!where.limit) return std::vector<std::string>();
  const bool one_more = where.keeps_best && history.best_checkpoint() > 0 && history.best_checkpoint() != step;
  return take_out(where.output_dir, std::max<int64_t>(*where.limit, one_more ? 2 : 1), step, history.best_checkpoint());
}

}  // namespace

uint64_t fingerprint(const tune::Recipe& recipe, const std::vector<tuning::TuningRow>& rows, int64_t world) {
  comm::Fingerprint out;
  for (int64_t number : {recipe.per_device_train_batch_size, recipe.gradient_accumulation_steps * world, recipe.seed,
                         recipe.data_seed.value_or(recipe.seed), static_cast<int64_t>(rows.size())})
    out.add(number);
  for (const tuning::TuningRow& row : rows) {
    out.add(static_cast<int64_t>(row.ids.size()));
    for (size_t i = 0; i < row.ids.size(); ++i) out.add(row.ids[i] * 0x100000000 + row.labels[i]);
    for (int64_t start : row.starts) out.add(start);
    for (size_t i = 0; i < row.rejected_ids.size(); ++i) out.add(row.rejected_ids[i] * 0x100000000 + row.rejected_labels[i]);
  }
  return out.value();
}

namespace {

base::Status write_state(const Checkpoints& where, const std::string& folder, const std::vector<tuning::NamedTensor>& state,
                         const tuning::FineTuning& run, const History& history) {
  std::vector<tuning::TensorToWrite> tensors;
  for (const tuning::NamedTensor& one : state) tensors.push_back({one.name, one.value, at::kFloat});
  std::map<std::string, std::string> about = history.sums();
  about["format"] = kFormat;
  about["step"] = fmt::to_string(run.done());
  about["fingerprint"] = fmt::to_string(where.fingerprint);
  if (!where.run.empty()) about["run"] = where.run;
  return tuning::write_tensors(folder + kStateFile, tensors, about);
}

}  // namespace

base::Status save(const Checkpoints& where, const Tuned& tuned, tuning::FineTuning& run, const History& history, Bar& bar) {
  const std::string name = fmt::format("{}{}", kPrefix, run.done());
  const auto state = where.only_model ? std::vector<tuning::NamedTensor>() : run.state();
  return with_result(tuned, run, [&](const Trained& trained) -> base::Status {
    TRY(checkpoint::still_owner(where.output_dir, where.token));
    TRY_ASSIGN(const std::string folder, begin_folder(where.output_dir, name, where.token));
    TRY(write_tuned(tuned, folder, bar, trained));
    TRY(os::write_file_atomic(folder + "/trainer_state.json", base::to_text(history.trainer_state(), 2) + "\n", 0644));
    if (!where.only_model) TRY(write_state(where, folder, state, run, history));
    TRY_ASSIGN(const std::vector<std::string> gone, publish(where, name, run.done(), history));
    return remove_all(gone);
  });
}

base::Result<std::optional<std::string>> newest_checkpoint(const std::string& output_dir) {
  TRY_ASSIGN(const auto steps, steps_in(output_dir));
  if (steps.empty()) return std::optional<std::string>();
  return std::optional<std::string>(folder_of(output_dir, steps.back()));
}

base::Result<std::optional<std::string>> newest_of_run(const std::string& output_dir, const checkpoint::Attempt& attempt) {
  std::optional<std::string> newest;
  if (attempt.restarts == 0 || attempt.run.empty()) return newest;
  TRY_ASSIGN(const auto steps, steps_in(output_dir));
  for (auto step = steps.rbegin(); step != steps.rend() && !newest; ++step) {
    const std::string folder = folder_of(output_dir, *step);
    TRY_ASSIGN(const bool resumable, os::is_present(folder + kStateFile));
    if (!resumable) continue;
    TRY_ASSIGN(const tuning::TensorFiles state, tuning::TensorFiles::open_file(folder + kStateFile));
    const std::map<std::string, std::string> about = state.metadata();
    const auto run = about.find("run");
    if (run != about.end() && run->second == checkpoint::mark_of(attempt.run)) newest = folder;
  }
  return newest;
}

base::Status remove_checkpoints(const std::string& output_dir) {
  TRY_ASSIGN(const std::vector<std::string> gone, take_out(output_dir, 0));
  return remove_all(gone);
}

base::Status remove_leftovers(const std::string& output_dir) {
  TRY_ASSIGN(const auto names, os::names_if_present(output_dir));
  for (const std::string& name : names.value_or(std::vector<std::string>{}))
    if (name.starts_with(kLeftover)) TRY(remove_one(output_dir + "/" + name));
  return base::ok();
}

base::Result<Found> open_checkpoint(const std::string& folder, uint64_t expected, const tuning::FineTuning& run, History& history) {
  TRY_ASSIGN(const bool there, os::is_present_folder(folder));
  if (!there) return unusable(folder, "there is no such folder");
  TRY_ASSIGN(const bool resumable, os::is_present(folder + kStateFile));
  if (!resumable) return unusable(folder, "it has no phalanx_state.safetensors: written by another program, or with save_only_model");
  TRY_ASSIGN(tuning::TensorFiles files, tuning::TensorFiles::open_file(folder + kStateFile));
  std::map<std::string, std::string> about = files.metadata();
  if (about["format"] != kFormat) return unusable(folder, "its state has another format");
  if (about["fingerprint"] != fmt::to_string(expected))
    return unusable(folder, "it was written with other data, another batch size of all ranks together, or another seed")
        .with_hint("set overwrite_output_dir: true to start again, or another output_dir");
  const auto step = base::parse_int(about["step"], 1, INT64_MAX);
  if (!step.ok()) return unusable(folder, "its state names no step");
  if (*step > run.steps()) return unusable(folder, fmt::format("it is after step {}, and the recipe has {}", *step, run.steps()));
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/trainer_state.json", 256 << 20));
  TRY_ASSIGN(const base::Json state, base::parse_json(text, 256 << 20));
  if (base::Status fits = tuning::compare_tensors(files, run.state_shapes(), {}); !fits.ok())
    return unusable(folder, fits.error().message + ": " + fits.error().cause);
  TRY(history.restore(state, about, parent_of(folder)));
  return Found{folder, std::move(files), *step};
}

base::Status load_checkpoint(const Found& found, tuning::FineTuning& run) {
  return run.load_state([&](const tuning::NamedTensor& one) -> base::Status {
    auto value = found.state.read(one.name);
    if (!value.ok()) return unusable(found.folder, value.error().message);
    at::Tensor target = one.value;
    target.copy_(*value);
    return base::ok();
  });
}

base::Status load_weights_of(const std::string& folder, bool adapter, tuning::FineTuning& run) {
  std::optional<tuning::TensorFiles> files;
  const auto open = [&]() -> base::Status {
    TRY_ASSIGN(files,
               adapter ? tuning::TensorFiles::open_file(folder + "/adapter_model.safetensors") : tuning::TensorFiles::open_folder(folder));
    return base::ok();
  };
  return run.load_weights([&](const tuning::NamedTensor& one) -> base::Status {
    if (!files) TRY(open());
    const std::string name = adapter ? tuning::name_in_adapter(one.name) : one.name;
    if (!files->has(name) || files->shape(name) != one.value.sizes()) return unusable(folder, fmt::format("it lacks {}", name));
    TRY_ASSIGN(const at::Tensor value, files->read(name));
    at::Tensor target = one.value;
    target.copy_(value);
    return base::ok();
  });
}

}  // namespace phalanx::engine::finetune
