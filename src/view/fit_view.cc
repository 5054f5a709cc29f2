#include "view/fit_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "words/message.h"

namespace phalanx::view {
namespace {

using fit::Memory;
using words::Text;
using words::tr;

constexpr double kGiB = 1024.0 * 1024 * 1024;

std::string with_commas(int64_t n) {
  std::string digits = std::to_string(n), out;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

std::string gib(int64_t bytes) {
  return bytes == 0 ? "-" : fmt::format("{:.{}f}", static_cast<double>(bytes) / kGiB, bytes < 10 * kGiB ? 2 : 1);
}

std::string way(const Memory& m, base::Language language) {
  std::string text(fit::name(m.stage));
  if (m.offload == fit::Offload::kOptimizer) text += Text{" + optimizer offload"}.in(language);
  if (m.offload == fit::Offload::kAll) text += Text{" + full offload"}.in(language);
  if (m.checkpointing) text += Text{", checkpointed"}.in(language);
  return text;
}

bool fits(const Memory& m, const FitTarget& target) {
  return static_cast<double>(m.gpu()) <= static_cast<double>(target.gpu_bytes) * fit::kUsableFraction &&
         (target.host_bytes == 0 || m.host <= target.host_bytes);
}

std::string padded(const std::string& text, size_t width, bool right) {
  size_t have = base::display_width(text);
  std::string fill(have < width ? width - have : 0, ' ');
  return right ? fill + text : text + fill;
}

std::string head(const fit::Model& model, const fit::Training& t, const FitTarget& target, base::Language language) {
  std::string out = tr(language, "{} parameters", with_commas(model.parameters));
  if (model.shape_known())
    out += tr(language, " ({}: {} layers, hidden {}, {} heads, vocabulary {})", model.name, model.layers, model.hidden, model.heads,
              model.vocabulary);
  out += '\n';
  const std::string gpu = !target.gpu_name.empty() ? target.gpu_name
                          : target.gpu_bytes > 0   ? "GPU"
                                                   : tr(language, "GPU (assumed: none was found)");
  out += tr(language, "{} ranks: {} hosts × {} {}", t.world(), t.hosts, t.gpus_per_host, gpu);
  if (target.gpu_bytes > 0)
    out += tr(language, " of {} GiB, {} GiB usable", gib(target.gpu_bytes),
              gib(static_cast<int64_t>(static_cast<double>(target.gpu_bytes) * fit::kUsableFraction)));
  const Text half = t.lora_rank > 0 ? Text{"16-bit, adapters in fp32"} : Text{"16-bit with fp32 master weights"};
  out += fmt::format("; {}, Adam", t.precision == fit::Precision::kFp32 ? "fp32" : half.in(language));
  if (model.shape_known())
    out += tr(language, ", {} sequences of {} tokens a rank in {} micro-batches", t.batch, fit::sequence_of(model, t), t.accumulate);
  if (t.lora_rank > 0)
    out +=
        tr(language, "\nLoRA of rank {} on all linear layers: {} parameters are trained", t.lora_rank, with_commas(fit::trained(model, t)));
  if (!model.shape_known())
    out += Text{"\nonly the number of parameters is known; activations and the largest layer are not included"}.in(language);
  return out + "\n\n";
}

std::string arithmetic(const fit::Model& model, const fit::Training& t, const Memory& m, base::Language language) {
  const bool lora = t.lora_rank > 0;
  const int64_t each = t.precision == fit::Precision::kFp32 ? 4 : 2, k = lora || each == 4 ? 8 : 12;
  const char* trained = lora ? "A" : "Ψ";
  auto part = [&](const std::string& bytes, bool shared) { return shared ? fmt::format("{}/{}", bytes, t.world()) : bytes; };
  using fit::Stage;
  bool away = m.offload != fit::Offload::kNone;
  std::string out = fmt::format("Ψ = {}", with_commas(model.parameters));
  if (lora) out += fmt::format(", A = {}", with_commas(fit::trained(model, t)));
  const bool sharded = m.stage >= Stage::kZero3;
  const std::string parameters =
      fmt::format("{}{}Ψ{}{}", lora && sharded ? "(" : "", each, lora ? " + 4A" : "", lora && sharded ? ")" : "");
  out += ": " + tr(language, "parameters {}", m.offload == fit::Offload::kAll ? "0" : part(parameters, sharded));
  out += tr(language, " + gradients {}", away ? "0" : part(fmt::format("{}{}", lora ? 4 : each, trained), m.stage >= Stage::kZero2));
  out += tr(language, " + optimizer {}", away ? "0" : part(fmt::format("{}{}", k, trained), m.stage >= Stage::kZero1));
  if (m.gathered > 0) out += tr(language, " + largest layer {} × {}", lora ? each : 2 * each, with_commas(model.largest_layer));
  if (m.activations > 0) out += tr(language, " + activations {} GiB (estimate) + logits {} GiB", gib(m.activations), gib(m.logits));
  out += tr(language, " + CUDA and NCCL {} GiB (round figure) = {} GiB\n", gib(m.context), gib(m.gpu()));
  return out;
}

// The row as settings to paste. DeepSpeed: its page "DeepSpeed Configuration JSON"; FSDP: torch.distributed.fsdp.ShardingStrategy, which
// has no counterpart of ZeRO-1; Transformers: PreTrainedModel. phalanx train has no offload of the parameters.
std::string settings(const fit::Training& t, const Memory& m, base::Language language) {
  const bool lora = t.lora_rank > 0;
  const int stage = static_cast<int>(m.stage);
  const bool half = t.precision != fit::Precision::kFp32, away = m.offload != fit::Offload::kNone,
             all_away = m.offload == fit::Offload::kAll;
  std::string out;
  auto line = [&](std::string_view tool, const std::string& text) { out += fmt::format("  {:<16}{}\n", tool, text); };
  if (lora)
    line("LLaMA-Factory", fmt::format("finetuning_type: lora, lora_rank: {}, lora_target: all{}", t.lora_rank, half ? ", bf16: true" : ""));
  if (lora) line("PEFT", fmt::format("LoraConfig(r={}, target_modules=\"all-linear\")", t.lora_rank));
  if (!lora && !all_away)
    line("phalanx train",
         fmt::format("parallel.mode={}{}{}{}", stage == 0 ? "ddp" : fmt::format("zero{}", stage), away ? " parallel.offload=on" : "",
                     half ? " train.precision=bf16-weights" : "", m.checkpointing ? " model.activation_checkpointing=blocks" : ""));
  if (!lora || stage > 0)
    line("DeepSpeed",
         fmt::format(R"({{"zero_optimization": {{"stage": {}{}{}}}{}}})", stage, away ? R"(, "offload_optimizer": {"device": "cpu"})" : "",
                     all_away ? R"(, "offload_param": {"device": "cpu"})" : "", half ? R"(, "bf16": {"enabled": true})" : ""));
  if (stage == 0) line("PyTorch", "torch.nn.parallel.DistributedDataParallel(model)");
  if (stage >= 2 && (!away || all_away))
    line("PyTorch", fmt::format("FullyShardedDataParallel(model, sharding_strategy=ShardingStrategy.{}{}{})",
                                stage == 2 ? "SHARD_GRAD_OP" : "FULL_SHARD", lora ? ", use_orig_params=True" : "",
                                all_away ? ", cpu_offload=CPUOffload(offload_params=True)" : ""));
  if (m.checkpointing) line("Transformers", "model.gradient_checkpointing_enable()");
  return words::tr(language, "as settings:\n") + out;
}

std::string verdict(const fit::Model& model, const fit::Training& t, const FitTarget& target, const std::vector<Memory>& all,
                    base::Language language) {
  if (target.gpu_bytes == 0) return tr(language, "to see which setup fits, give --gpu-memory or hosts with GPUs\n");
  int best = fit::cheapest(all, target.gpu_bytes, target.host_bytes);
  if (best < 0) return tr(language, "nothing fits; use more GPUs, a smaller micro-batch or a shorter sequence\n");
  const Memory& m = all[static_cast<size_t>(best)];
  return tr(language, "cheapest that fits: {}\n  {}", way(m, language), arithmetic(model, t, m, language)) + settings(t, m, language);
}

}  // namespace

std::string fit_text(const fit::Model& model, const fit::Training& training, const FitTarget& target, base::Language language) {
  std::vector<Memory> all = fit::choices(model, training);
  std::string out = head(model, training, target, language);
  std::vector<std::vector<std::string>> rows;
  auto word = [&](Text w) { return std::string(w.in(language)); };
  rows.push_back({word(Text{"GiB per rank"}), word(Text{"params"}), word(Text{"grads"}), word(Text{"optimizer"}), word(Text{"gathered"}),
                  word(Text{"activations"}), "logits", word(Text{"total"}), word(Text{"host RAM"}), word(Text{"fits"})});
  for (const Memory& m : all)
    rows.push_back({way(m, language), gib(m.parameters), gib(m.gradients), gib(m.optimizer), gib(m.gathered), gib(m.activations),
                    gib(m.logits), gib(m.gpu()), gib(m.host),
                    target.gpu_bytes == 0 ? ""
                    : fits(m, target)     ? word(Text{"yes"})
                                          : word(Text{"no"})});
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const auto& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], base::display_width(row[c]));
  for (const auto& row : rows) {
    std::string line;
    for (size_t c = 0; c < row.size(); ++c) line += (c ? "  " : "") + padded(row[c], widths[c], c > 0);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + '\n';
  }
  return out + '\n' + verdict(model, training, target, all, language);
}

base::Json fit_json(const fit::Model& model, const fit::Training& training, const FitTarget& target) {
  base::Json json;
  json["schema"] = 1;
  json["model"] = {{"type", model.name},   {"parameters", model.parameters}, {"largest_layer", model.largest_layer},
                   {"block", model.block}, {"layers", model.layers},         {"hidden", model.hidden}};
  json["training"] = {{"hosts", training.hosts},
                      {"gpus_per_host", training.gpus_per_host},
                      {"precision", training.precision == fit::Precision::kFp32 ? "fp32" : "16bit"},
                      {"sequence", fit::sequence_of(model, training)},
                      {"batch", training.batch},
                      {"accumulate", training.accumulate},
                      {"flash", training.flash},
                      {"lora_rank", training.lora_rank},
                      {"trained", fit::trained(model, training)}};
  json["target"] = {{"gpu", target.gpu_name}, {"gpu_bytes", target.gpu_bytes}, {"host_bytes", target.host_bytes}};
  std::vector<Memory> all = fit::choices(model, training);
  base::Json list = base::Json::array();
  for (const Memory& m : all) {
    constexpr std::string_view kOffloads[] = {"none", "optimizer", "all"};
    base::Json item = {{"stage", std::string(fit::name(m.stage))},
                       {"offload", std::string(kOffloads[static_cast<size_t>(m.offload)])},
                       {"checkpointing", m.checkpointing},
                       {"parameters", m.parameters},
                       {"gradients", m.gradients},
                       {"optimizer", m.optimizer},
                       {"gathered", m.gathered},
                       {"activations", m.activations},
                       {"logits", m.logits},
                       {"context", m.context},
                       {"gpu", m.gpu()},
                       {"host", m.host}};
    if (target.gpu_bytes > 0) item["fits"] = fits(m, target);
    list.push_back(std::move(item));
  }
  json["choices"] = std::move(list);
  int best = target.gpu_bytes > 0 ? fit::cheapest(all, target.gpu_bytes, target.host_bytes) : -1;
  json["cheapest"] = best < 0 ? base::Json() : base::Json(best);
  return json;
}

}  // namespace phalanx::view
