#include "engine/finetune/finetune.h"

#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <c10/core/DeviceGuard.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "base/counted.h"
#include "base/text.h"
#include "base/try.h"
#include "base/unicode.h"
#include "engine/comm/group.h"
#include "engine/finetune/trained_parts.h"
#include "engine/finetune/training.h"
#include "engine/finetune/vocabulary.h"
#include "engine/train/cpu.h"
#include "engine/train/device.h"
#include "engine/train/report/progress.h"
#include "engine/tuning/load_decoder.h"
#include "os/files.h"
#include "tune/decoder/decoder_config.h"

namespace phalanx::engine::finetune {
namespace {

using words::tr;

// What the key `deepspeed` says, or the file it names.
base::Status read_zero(tune::ReadRecipe* read) {
  const tune::FileOrTree& from = read->recipe.deepspeed;
  base::Json tree = from.tree;
  if (!from.path.empty()) {
    auto text = os::read_file(from.path, 1 << 20);
    if (!text.ok())
      return base::fail(base::ErrorKind::kConfig, fmt::format("deepspeed: cannot read {}", base::quote(from.path, 400)))
          .because(text.error().cause.empty() ? text.error().message : text.error().cause)
          .with_hint("a relative path is one from the folder in which phalanx-train runs");
    auto parsed = base::parse_json(*text);
    if (!parsed.ok())
      return base::fail(base::ErrorKind::kConfig, fmt::format("deepspeed: {} is not valid JSON", base::quote(from.path, 400)))
          .because(parsed.error().cause.empty() ? parsed.error().message : parsed.error().cause);
    tree = std::move(*parsed);
  }
  if (tree.is_null()) return base::ok();
  TRY_ASSIGN(read->recipe.zero, tune::read_deepspeed(tree, read->recipe, &read->given));
  return base::ok();
}

void tell_unused(const tune::ReadRecipe& read, Bar& bar) {
  std::vector<std::string> names;
  for (const tune::GivenKey& one : read.given)
    if (one.handling == tune::Handling::kMeaningless) names.push_back(one.key);
  if (!names.empty()) bar.note(tr("keys without a meaning here (--explain says why): {}", base::join(names, ", ")));
}

// Looks at the model's files before anything long: config.json, and the headers of the weights.
base::Result<tune::DecoderConfig> look_at_model(const std::string& folder) {
  TRY_ASSIGN(const bool there, os::is_present_folder(folder));
  if (!there)
    return base::fail(base::ErrorKind::kConfig, fmt::format("model_name_or_path: there is no folder {}", base::quote(folder, 400)))
        .with_hint("download the model, and give its folder");
  TRY_ASSIGN(const std::string text, os::read_file(folder + "/config.json", 1 << 20));
  TRY_ASSIGN(tune::DecoderConfig config, tune::parse_decoder_config(text));
  TRY(tuning::TensorFiles::open_folder(folder));
  return config;
}

// Where training starts: nothing for step 0, or the checkpoint to continue. What an earlier attempt of this run has saved is continued,
// whatever the recipe says of a first start. Error kConfig: results lie there that nobody said to replace.
// Source: hiyouga/LLaMA-Factory v0.9.3, src/llamafactory/hparams/parser.py.
using Place = std::optional<std::string>;
base::Result<Place> place_to_start(const tune::Recipe& recipe, const checkpoint::Attempt& attempt) {
  const std::string& wanted = recipe.resume_from_checkpoint;
  const bool newest = wanted == "true";
  TRY_ASSIGN(Place left, newest_of_run(recipe.output_dir, attempt));
  if (left) return left;
  if (!wanted.empty() && wanted != "false" && !newest) return Place(wanted);
  TRY_ASSIGN(Place found, newest_checkpoint(recipe.output_dir));
  if (newest && !found)
    return base::fail(base::ErrorKind::kConfig,
                      fmt::format("resume_from_checkpoint is true, but {} has no checkpoint", base::quote(recipe.output_dir, 400)));
  const bool continues = !recipe.overwrite_output_dir && wanted != "false" && found && !recipe.save_only_model;
  if (newest || continues) return found;
  if (recipe.overwrite_output_dir) return Place();
  for (const char* name : {"adapter_model.safetensors", "model.safetensors", "model.safetensors.index.json"}) {
    TRY_ASSIGN(const bool present, os::is_present(recipe.output_dir + "/" + name));
    if (present || found)
      return base::fail(base::ErrorKind::kConfig, fmt::format("output_dir {} has results already", base::quote(recipe.output_dir, 400)))
          .with_hint("set overwrite_output_dir: true to replace them, or another output_dir");
  }
  return Place();
}

base::Status find_start(const tune::Recipe& recipe, const checkpoint::Attempt& attempt, Place* out) {
  TRY_ASSIGN(*out, place_to_start(recipe, attempt));
  return base::ok();
}

// What a preference is compared with is the model without its adapter, which saved modules replace.
base::Status check_reference(const tune::Recipe& recipe, const std::optional<tune::AdapterConfig>& adapter) {
  const bool continued = merged_adapters(recipe) < recipe.adapter_name_or_path.size();
  if (!adapter || adapter->saved.empty() || !continued || recipe.stage != "dpo" || !tuning::has_reference(recipe)) return base::ok();
  return base::fail(base::ErrorKind::kConfig,
                    "stage dpo cannot continue an adapter with modules_to_save: they replace what it is compared with")
      .with_hint("create_new_adapter: true merges it first");
}

base::Status load_weights(tuning::HollowDecoder hollow, const tune::Recipe& recipe, Bar& bar, Training* out) {
  const auto progress = [&](uint64_t done, uint64_t all) { bar.advance(done, all); };
  const bool merges = merged_adapters(recipe) > 0;
  bar.start(words::Text{"loading the model"}, "load", Bar::Unit::kBytes, 0);
  // Adapters that are to be merged need the weights now.
  if (merges) TRY(tuning::fill_decoder(hollow, true, progress));
  TRY_ASSIGN(out->tuned.adapter, choose_trained(hollow.decoder, recipe));
  TRY(check_reference(recipe, out->tuned.adapter));
  // An adapter that is continued has brought its own.
  if (merged_adapters(recipe) < recipe.adapter_name_or_path.size())
    std::erase_if(hollow.parameters, [&](const tuning::NamedTensor& one) { return tune::is_saved(*out->tuned.adapter, one.name); });
  if (!merges && recipe.zero.stage != 3)
    TRY(recipe.finetuning_type == "lora" ? tuning::map_decoder(hollow, recipe.bf16, progress)
                                         : tuning::fill_decoder(hollow, true, progress));
  // Sharded parameters get their values when they have been sharded.
  if (!merges && recipe.zero.stage == 3) out->hollow = std::move(hollow);
  bar.end();
  return base::ok();
}

base::Status tell_of_rows(const tune::Recipe& recipe, Bar& bar) {
  TRY_ASSIGN(const auto notes, notes_on_order(recipe.adapter_name_or_path));
  for (const words::Message& note : notes) bar.note(note);
  const std::vector<std::string>& extra = recipe.freeze_extra_modules;
  const bool trained = std::find(extra.begin(), extra.end(), "embed_tokens") != extra.end();
  if (recipe.finetuning_type == "freeze" && recipe.extends_vocabulary() && !trained)
    bar.note(tr("the rows of new tokens are frozen: freeze_extra_modules does not name embed_tokens"));
  return base::ok();
}

// Products take frozen matrices in bf16 with `bf16`: beside an adapter, which alone will be written, they need half the memory as such.
// What has no values yet gets no memory either: sharded, no GPU has to hold the whole model.
void move_to(at::Device device, const tune::Recipe& recipe, Training* training) {
  at::NoGradGuard no_grad;
  tuning::Decoder& decoder = training->tuned.decoder;
  const std::vector<tuning::NamedTensor>& hollow = training->hollow.parameters;
  if (recipe.bf16 && hollow.empty() && training->tuned.adapter)
    for (auto& [name, projection] : decoder->projections())
      if (!projection->weight.requires_grad()) projection->weight.set_data(projection->weight.to(at::kBFloat16));
  for (at::Tensor& parameter : decoder->parameters()) {
    const bool empty = std::any_of(hollow.begin(), hollow.end(), [&](const auto& one) { return one.value.is_same(parameter); });
    parameter.set_data(empty ? at::empty({1}, parameter.options().device(device)).expand(parameter.sizes()) : parameter.to(device));
  }
}

// Model and data, checked, cheap checks first.
base::Status load(const tune::Recipe& recipe, at::Device device, std::optional<Text>* text, Bar& bar, Training* out) {
  const std::string& folder = recipe.model_name_or_path;
  TRY_ASSIGN(const tune::DecoderConfig shape, look_at_model(folder));
  TRY_ASSIGN(const std::string words, tokenizer_folder(folder, recipe.adapter_name_or_path));
  if (recipe.tokenized_path.empty()) { TRY_ASSIGN(*text, read_text(recipe, words)); }
  const Text* read = *text ? &**text : nullptr;
  TRY_ASSIGN(const tuning::Changes changes, changes_for(recipe, read, shape.vocabulary, true));
  const int64_t rows = std::max(shape.vocabulary, changes.vocabulary);
  TRY_ASSIGN(RowsRead data, read_rows(recipe, read, rows, bar));
  bar.note(tr("data: {} sequences, {} tokens, {} of them learned; records omitted: {}", data.rows.size(), data.tokens, data.learned,
              data.dropped));
  if (!data.evaluated.empty()) bar.note(tr("evaluation: {} sequences", data.evaluated.size()));
  TRY(tell_of_rows(recipe, bar));
  if (rows != shape.vocabulary) bar.note(tr("the embedding has {} rows now, {} before", rows, shape.vocabulary));
  TRY_ASSIGN(tuning::HollowDecoder hollow, tuning::make_decoder(folder, changes));
  out->tuned = {hollow.decoder, std::nullopt, folder, words, read};
  TRY(load_weights(std::move(hollow), recipe, bar, out));
  if (!device.is_cpu()) move_to(device, recipe, out);
  out->recipe = recipe;
  out->rows = std::move(data.rows);
  out->evaluated = std::move(data.evaluated);
  return base::ok();
}

base::Result<int> train_as(const tune::ReadRecipe& given, const comm::RankEnv& env) {
  const tune::Recipe& recipe = given.recipe;
  if (!recipe.do_train)
    return base::fail(base::ErrorKind::kConfig, "do_train is not true: there is nothing to do").with_hint("do_train=true");
  // Gathered parameters come and go; kept, their memory would add up to more than the whole model.
  if (recipe.zero.stage == 3) train::return_freed_memory();
  else train::keep_freed_memory();
  const int threads = train::use_threads(env);
  const int64_t batch = recipe.per_device_train_batch_size * recipe.gradient_accumulation_steps * env.world;
  if (recipe.zero.batch_of_all_ranks.value_or(batch) != batch)
    return base::fail(base::ErrorKind::kConfig, fmt::format("deepspeed: train_batch_size is {}, and {} ranks come to {} sequences a step",
                                                            *recipe.zero.batch_of_all_ranks, env.world, batch))
        .with_hint("train_batch_size: \"auto\"");
  Bar bar(env.rank == 0, train::event_descriptor());
  TRY_ASSIGN(const at::Device device, train::choose_device(recipe.use_cpu ? "cpu" : "auto", env));
  const c10::DeviceGuard on_device(device);
  at::globalContext().setAllowTF32CuBLAS(recipe.tf32);
  if (auto warning = device.is_cpu() ? train::slow_blas_warning() : std::nullopt) bar.note(*warning);
  tell_unused(given, bar);

  TRY(History::check(recipe));
  // A rank that cannot read its files says so before the others wait for it in the first step.
  TRY_ASSIGN(const std::unique_ptr<comm::Group> group, comm::join(env, device));
  if (!device.is_cpu()) bar.note(tr("on GPUs, one for each rank; {}", group->describe()));
  Training training;
  training.threads = threads;
  training.attempt = {env.run, env.restarts};
  const std::string token = training.token = checkpoint::make_token();
  std::optional<Text> text;  // which training points to
  TRY(comm::agree(*group, load(recipe, device, &text, bar, &training), "reading the model and the data"));
  Place start;
  TRY(comm::agree(*group, env.rank == 0 ? find_start(recipe, training.attempt, &start) : base::ok(), "looking at output_dir"));
  TRY_ASSIGN(const int signal, train(std::move(training), start, *group, bar));
  group->leave();
  // Not before all ranks are through: a restart would begin anew.
  if (signal == 0 && env.rank == 0) checkpoint::release(recipe.output_dir, token);
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace

base::Result<tune::ReadRecipe> read_whole(const Command& command) {
  auto out = tune::read_recipe(command.yaml, command.overrides);
  base::Status status = out.ok() ? read_zero(&*out) : base::Status(out.error());
  if (status.ok()) return out;
  base::Error error = std::move(status).error();
  error.message = fmt::format("{}: {}", command.path, error.message);
  return error;
}

bool is_recipe(std::string_view yaml) { return tune::is_recipe(yaml); }

base::Result<int> run_command(const Command& command, bool explain) {
  TRY_ASSIGN(const tune::ReadRecipe given, read_whole(command));
  if (explain) {
    fmt::print("{}", tune::explain(given, train::language_here()));
    return 0;
  }
  TRY_ASSIGN(const comm::RankEnv env, comm::read_rank_env(comm::process_environment));
  try {
    return train_as(given, env);
  } catch (const std::exception& failure) {
    return base::fail(base::ErrorKind::kJobFailed, fmt::format("rank {} of {} cannot continue", env.rank, env.world))
        .because(comm::reason(failure));
  }
}

}  // namespace phalanx::engine::finetune
