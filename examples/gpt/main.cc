// A GPT on the bytes of a text, in any of ZeRO's stages, that saves and resumes.
//
//   gpt text=FILE [out=FOLDER] [stage=0|1|2|3] [steps=60] [until=STEP] [rows=16] [accumulate=1] [precision=fp32|bf16|fp16]
//
// `rows` are those of all ranks together: the losses are the same, up to rounding, on any number of ranks and in every stage. With out=,
// it saves there behind the last step (or step `until`), and begins behind the newest checkpoint it finds: of whatever number of ranks,
// whatever stage.
#include <ATen/Context.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>

#include "engine/autocast.h"
#include "engine/checkpoint/reader.h"
#include "engine/checkpoint/saver.h"
#include "engine/checkpoint/shared_folder.h"
#include "engine/comm/group.h"
#include "engine/data/open_set.h"
#include "engine/data/step_loader.h"
#include "engine/model/gpt.h"
#include "engine/optim/adamw.h"
#include "engine/optim/grad_scaler.h"
#include "engine/optim/schedule.h"
#include "engine/parallel/data_parallel.h"
#include "engine/train/cpu.h"

namespace {

using namespace phalanx;
using namespace phalanx::engine;
using Cover = parallel::DataParallel::Cover;

constexpr int64_t kContext = 64;  // tokens the model sees at once

struct Arguments {
  std::string text, out, precision = "fp32";
  int64_t stage = 0, steps = 60, until = 1'000'000, rows = 16, accumulate = 1;
};

base::Result<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  const std::map<std::string, std::string*> texts = {
      {"text", &arguments.text}, {"out", &arguments.out}, {"precision", &arguments.precision}};
  const std::map<std::string, std::pair<int64_t*, int64_t>> numbers = {{"stage", {&arguments.stage, 3}},
                                                                       {"steps", {&arguments.steps, 1'000'000}},
                                                                       {"until", {&arguments.until, 1'000'000}},
                                                                       {"rows", {&arguments.rows, 4096}},
                                                                       {"accumulate", {&arguments.accumulate, 4096}}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], key = word.substr(0, word.find('=')), value = word.substr(std::min(word.size(), key.size() + 1));
    const auto bad = [&](const std::string& why) { return base::fail(base::ErrorKind::kUsage, "argument " + word + ": " + why); };
    if (auto text = texts.find(key); text != texts.end()) {
      *text->second = value;
    } else if (auto number = numbers.find(key); number != numbers.end()) {
      const auto [target, most] = number->second;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *target);
      const int64_t least = key == "stage" ? 0 : 1;
      if (error != std::errc() || end != value.data() + value.size() || *target < least || *target > most)
        return bad("not a number from " + std::to_string(least) + " to " + std::to_string(most));
    } else {
      return bad("unknown; see the top of main.cc");
    }
  }
  if (arguments.text.empty()) return base::fail(base::ErrorKind::kUsage, "no text=FILE is given");
  if (arguments.precision != "fp32" && arguments.precision != "bf16" && arguments.precision != "fp16")
    return base::fail(base::ErrorKind::kUsage, "precision is none of fp32, bf16, fp16");
  return arguments;
}

// What a rank has of the parameters and of the optimizer's states, under the names they have in a checkpoint.
template <typename Use>
base::Status each_span(const parallel::DataParallel& parallel, const optim::Optimizer& optimizer, Cover cover, Use use) {
  for (const parallel::Span& span : parallel.spans(cover)) PHALANX_TRY(use("model." + span.name, span));
  for (const optim::NamedState& state : optimizer.states())
    for (const parallel::Span& span : parallel.spans(cover, state.rows)) PHALANX_TRY(use(state.name + "." + span.name, span));
  return base::ok();
}

// Every rank copies what it owns; threads write the shards side by side. If the save before is still being written, all ranks wait for it.
base::Status save(comm::Group& group, checkpoint::Saver& saver, const parallel::DataParallel& parallel, const optim::Optimizer& optimizer,
                  base::Json state) {
  checkpoint::wait_together(group, &saver);
  checkpoint::SaveRequest request;
  request.step = optimizer.steps_done;
  request.common_state = std::move(state);
  PHALANX_TRY(each_span(parallel, optimizer, Cover::kOwn, [&](std::string name, const parallel::Span& span) {
    request.pieces.push_back({std::move(name), span.shape, span.begin, span.data});
    return base::ok();
  }));
  return saver.save(std::move(request));
}

// Every rank reads what it holds, however many ranks wrote it. Collective.
base::Result<base::Json> load(const std::string& path, comm::Group& group, parallel::DataParallel& parallel, optim::Optimizer& optimizer) {
  base::Json state;
  auto read = [&]() -> base::Status {
    PHALANX_TRY_ASSIGN(checkpoint::Reader reader, checkpoint::Reader::open(path));
    optimizer.steps_done = reader.step();
    state = reader.common_state();
    return each_span(parallel, optimizer, Cover::kHeld, [&](const std::string& name, const parallel::Span& span) {
      return reader.read(name, span.begin, span.begin + span.data.numel(), span.data);
    });
  };
  PHALANX_TRY(comm::agree(group, read(), "reading the checkpoint"));  // one rank's error is every rank's
  parallel.loaded();
  return state;
}

base::Result<std::unique_ptr<checkpoint::Saver>> open_saver(const std::string& folder, comm::Group& group) {
  checkpoint::SaverOptions options;
  options.folder = folder;
  options.rank = group.rank();
  options.world = group.world();
  options.token = checkpoint::common_token(group);
  options.keep = 2;
  PHALANX_TRY(checkpoint::require_shared(group, folder, options.token));
  std::unique_ptr<checkpoint::Saver> saver;
  for (const bool turn : {group.rank() == 0, group.rank() != 0}) {  // rank 0 first: it removes what a crash has left
    base::Status opened = base::ok();
    if (turn) {
      auto mine = checkpoint::Saver::open(options);
      if (mine.ok()) saver = *std::move(mine);
      else opened = std::move(mine.error());
    }
    PHALANX_TRY(comm::agree(group, std::move(opened), "opening the folder of checkpoints"));
  }
  return saver;
}

// The steps of this rank, made ahead by a worker thread. All ranks must see the same text.
base::Result<std::unique_ptr<data::StepLoader>> open_data(const Arguments& arguments, comm::Group& group) {
  if (arguments.rows % (group.world() * arguments.accumulate) != 0)
    return base::fail(base::ErrorKind::kUsage, "rows is not a multiple of ranks times accumulate");
  data::SetOptions files;
  files.files = arguments.text;
  files.format = data::Format::kText;
  files.lines.context = kContext;
  base::Result<data::OpenedSet> set = data::open_set(files);
  PHALANX_TRY(comm::agree(group, set.ok() ? base::ok() : base::Status(set.error()), "opening the text"));
  PHALANX_TRY(comm::require_same(group, "the text", set->fingerprint()));
  data::LoaderOptions options;
  options.plan = {.world = group.world(), .rank = group.rank(), .rows = arguments.rows / group.world(), .seed = 1};
  options.accumulate = arguments.accumulate;
  options.workers = 1;
  return data::StepLoader::create(set->training, options);
}

// How it computes, and where.
struct Precision {
  explicit Precision(const std::string& name) : scaling(name == "fp16"), autocast{name != "fp32", scaling ? at::kHalf : at::kBFloat16} {}
  bool scaling;
  AutocastState autocast;
  optim::GradScaler scaler;
};

// One step of all ranks together; returns the mean loss of all their tokens.
base::Result<double> train_step(model::Gpt& gpt, const data::Step& step, parallel::DataParallel& parallel, optim::Optimizer& optimizer,
                                Precision& precision, comm::Group& group, double lr) {
  const double scale = precision.scaling ? precision.scaler.scale() : 1;
  const auto targets = static_cast<double>(step.rows_of_all * kContext);
  at::Tensor sum = at::zeros({1}, group.device());
  for (size_t i = 0; i < step.micro.size(); ++i) {
    const bool last = i + 1 == step.micro.size();
    at::Tensor loss;
    {
      AutocastScope scope(group.device(), precision.autocast);
      loss = gpt->loss(step.micro[i].at("tokens").to(group.device()), step.micro[i].at("targets").to(group.device())).sum;
    }
    parallel.backward(loss * (scale / targets), last);
    sum += loss.detach();
  }
  const parallel::StepResult result = parallel.step(optimizer, {.lr = lr, .max_norm = 1.0, .loss_scale = scale});
  if (precision.scaling) precision.scaler.update(result.finite);
  else if (!result.finite) return base::fail(base::ErrorKind::kJobFailed, "the gradients are not finite");
  group.all_reduce(sum, comm::Reduction::kSum, "loss");
  return sum.item<double>() / targets;
}

base::Status run(const Arguments& arguments) {
  PHALANX_TRY_ASSIGN(comm::RankEnv env, comm::read_rank_env(comm::process_environment));
  train::use_threads(env);
  const bool gpu = torch::cuda::is_available();
  const at::Device device = gpu ? at::Device(at::kCUDA, static_cast<at::DeviceIndex>(env.local_rank.value_or(0))) : at::Device(at::kCPU);
  const c10::DeviceGuard guard(device);
  if (!gpu && arguments.precision == "fp16") return base::fail(base::ErrorKind::kUnfit, "libtorch cannot multiply fp16 matrices on a CPU");
  PHALANX_TRY_ASSIGN(std::unique_ptr<comm::Group> group, comm::join(env, device));

  PHALANX_TRY_ASSIGN(auto loader, open_data(arguments, *group));

  model::Gpt gpt(model::GptShape{.vocabulary = 256, .context = kContext, .layers = 2, .heads = 4, .width = 64});
  gpt->to(device);  // before it is wrapped
  parallel::Options options;
  options.stage = static_cast<parallel::Stage>(arguments.stage);
  options.reduce = parallel::Reduce::kSum;  // each rank divides by the tokens of all ranks
  options.persistent_elements = 1000;       // of a model this small nearly all would count as small
  PHALANX_TRY_ASSIGN(auto parallel, parallel::DataParallel::wrap(*gpt, *group, options));
  parallel->initialise([&] { gpt->init(1); });
  optim::AdamW adamw(parallel->rows(), parallel->groups(), {});
  Precision precision(arguments.precision);

  std::unique_ptr<checkpoint::Saver> saver;
  if (!arguments.out.empty()) {
    PHALANX_TRY_ASSIGN(saver, open_saver(arguments.out, *group));
    auto found = checkpoint::latest(arguments.out);
    PHALANX_TRY(comm::agree(*group, found.ok() ? base::ok() : base::Status(found.error()), "looking for the newest checkpoint"));
    const std::string newest = comm::exchange(*group, found->value_or(""), "newest checkpoint").front();
    if (!newest.empty()) {
      PHALANX_TRY_ASSIGN(const base::Json state, load(newest, *group, *parallel, adamw));
      PHALANX_TRY(loader->restore(state.value("data", base::Json())));
      PHALANX_TRY(precision.scaler.restore(state.value("scaler", base::Json())));
    }
  }

  const optim::Schedule schedule{.curve = optim::Curve::kCosine, .lr = 3e-3, .min_lr = 3e-4, .warmup = 5, .steps = arguments.steps};
  const int64_t began = adamw.steps_done;
  while (adamw.steps_done < std::min(arguments.steps, arguments.until)) {
    PHALANX_TRY_ASSIGN(data::Step step, loader->next());
    PHALANX_TRY_ASSIGN(const double loss, train_step(gpt, step, *parallel, adamw, precision, *group, schedule.at(adamw.steps_done)));
    if (group->rank() == 0) std::printf("step %lld loss %.4f\n", static_cast<long long>(adamw.steps_done), loss);
  }

  if (saver && adamw.steps_done > began) {
    PHALANX_TRY(save(*group, *saver, *parallel, adamw, {{"data", loader->state()}, {"scaler", precision.scaler.state()}}));
    checkpoint::wait_together(*group, saver.get());
    while (auto outcome = saver->poll()) {
      PHALANX_TRY(std::move(outcome->status));
      if (group->rank() == 0 && !outcome->path.empty()) std::printf("saved %s\n", outcome->path.c_str());
    }
  }
  group->leave();
  return base::ok();
}

}  // namespace

int main(int argc, char** argv) {
  base::Status done = base::ok();
  try {
    base::Result<Arguments> arguments = parse(argc, argv);
    done = arguments.ok() ? run(*arguments) : base::Status(arguments.error());
  } catch (const std::exception& failure) {
    done = base::fail(base::ErrorKind::kJobFailed, "this rank cannot go on").because(comm::reason(failure));
  }
  if (done.ok()) return 0;
  std::fputs(done.error().render().c_str(), stderr);
  return base::exit_code(done.error().kind);
}
