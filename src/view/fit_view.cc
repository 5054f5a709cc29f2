#include "view/fit_view.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::view {
namespace {

using base::Bilingual;
using fit::Memory;

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
  if (m.offload == fit::Offload::kOptimizer) text += Bilingual{" + optimizer offload", " + 优化器卸载"}.in(language);
  if (m.offload == fit::Offload::kAll) text += Bilingual{" + full offload", " + 全部卸载"}.in(language);
  if (m.checkpointing) text += Bilingual{", checkpointed", "，重计算"}.in(language);
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
  std::string out = fmt::format(fmt::runtime(Bilingual{"{} parameters", "{} 个参数"}.in(language)), with_commas(model.parameters));
  if (model.shape_known())
    out += fmt::format(
        fmt::runtime(
            Bilingual{" ({}: {} layers, hidden {}, {} heads, vocabulary {})", "（{}：{} 层，隐藏维度 {}，{} 个注意力头，词表 {}）"}.in(
                language)),
        model.name, model.layers, model.hidden, model.heads, model.vocabulary);
  out += '\n';
  std::string gpu = target.gpu_name.empty() ? "GPU" : target.gpu_name;
  out += fmt::format(fmt::runtime(Bilingual{"{} rank(s): {} host(s) × {} {}", "{} 个 rank：{} 台主机 × {} 块 {}"}.in(language)), t.world(),
                     t.hosts, t.gpus_per_host, gpu);
  if (target.gpu_bytes > 0)
    out += fmt::format(fmt::runtime(Bilingual{" of {} GiB, {} GiB usable", "，每块 {} GiB，可用 {} GiB"}.in(language)),
                       gib(target.gpu_bytes), gib(static_cast<int64_t>(static_cast<double>(target.gpu_bytes) * fit::kUsableFraction)));
  out += fmt::format("; {}, Adam", t.precision == fit::Precision::kFp32
                                       ? "fp32"
                                       : Bilingual{"16-bit with fp32 master weights", "16 位（fp32 主权重）"}.in(language));
  if (model.shape_known())
    out += fmt::format(
        fmt::runtime(
            Bilingual{", {} sequence(s) of {} tokens a rank in {} micro-batch(es)", "，每 rank {} 条长 {} 的序列，分 {} 个 micro-batch"}.in(
                language)),
        t.batch, fit::sequence_of(model, t), t.accumulate);
  if (!model.shape_known())
    out += Bilingual{"\nonly the number of parameters is known; activations and the largest layer are not included",
                     "\n只知道参数量：激活与最大层未计入"}
               .in(language);
  return out + "\n\n";
}

std::string arithmetic(const fit::Model& model, const fit::Training& t, const Memory& m, base::Language language) {
  int64_t each = t.precision == fit::Precision::kFp32 ? 4 : 2, k = t.precision == fit::Precision::kFp32 ? 8 : 12;
  auto part = [&](int64_t bytes, bool shared) { return shared ? fmt::format("{}Ψ/{}", bytes, t.world()) : fmt::format("{}Ψ", bytes); };
  using fit::Stage;
  bool away = m.offload != fit::Offload::kNone;
  std::string out = fmt::format("Ψ = {}: ", with_commas(model.parameters));
  out += fmt::format(fmt::runtime(Bilingual{"parameters {}", "参数 {}"}.in(language)),
                     m.offload == fit::Offload::kAll ? "0" : part(each, m.stage >= Stage::kZero3));
  out +=
      fmt::format(fmt::runtime(Bilingual{" + gradients {}", " + 梯度 {}"}.in(language)), away ? "0" : part(each, m.stage >= Stage::kZero2));
  out +=
      fmt::format(fmt::runtime(Bilingual{" + optimizer {}", " + 优化器 {}"}.in(language)), away ? "0" : part(k, m.stage >= Stage::kZero1));
  if (m.gathered > 0)
    out += fmt::format(fmt::runtime(Bilingual{" + largest layer {} × {}", " + 最大层 {} × {}"}.in(language)), 2 * each,
                       with_commas(model.largest_layer));
  if (m.activations > 0)
    out += fmt::format(
        fmt::runtime(Bilingual{" + activations {} GiB (estimate) + logits {} GiB", " + 激活 {} GiB（估计）+ logits {} GiB"}.in(language)),
        gib(m.activations), gib(m.logits));
  out += fmt::format(
      fmt::runtime(Bilingual{" + CUDA and NCCL {} GiB (round figure) = {} GiB\n", " + CUDA 与 NCCL {} GiB（约数）= {} GiB\n"}.in(language)),
      gib(m.context), gib(m.gpu()));
  return out;
}

std::string verdict(const fit::Model& model, const fit::Training& t, const FitTarget& target, const std::vector<Memory>& all,
                    base::Language language) {
  if (target.gpu_bytes == 0)
    return std::string(Bilingual{"to see which setup fits, give --gpu-memory or hosts with GPUs\n",
                                 "给出 --gpu-memory 或带 GPU 的主机，即可判断哪种方案放得下\n"}
                           .in(language));
  int best = fit::cheapest(all, target.gpu_bytes, target.host_bytes);
  if (best < 0)
    return std::string(Bilingual{"nothing fits; use more GPUs, a smaller micro-batch or a shorter sequence\n",
                                 "都放不下：需要更多 GPU、更小的 micro-batch 或更短的序列\n"}
                           .in(language));
  const Memory& m = all[static_cast<size_t>(best)];
  return fmt::format(fmt::runtime(Bilingual{"cheapest that fits: {}\n  {}", "放得下的最省方案：{}\n  {}"}.in(language)), way(m, language),
                     arithmetic(model, t, m, language));
}

}  // namespace

std::string fit_text(const fit::Model& model, const fit::Training& training, const FitTarget& target, base::Language language) {
  std::vector<Memory> all = fit::choices(model, training);
  std::string out = head(model, training, target, language);
  std::vector<std::vector<std::string>> rows;
  auto word = [&](Bilingual w) { return std::string(w.in(language)); };
  rows.push_back({word({"GiB per rank", "每 rank 的 GiB"}), word({"params", "参数"}), word({"grads", "梯度"}),
                  word({"optimizer", "优化器"}), word({"gathered", "聚集层"}), word({"activations", "激活"}), "logits",
                  word({"total", "合计"}), word({"host RAM", "主机内存"}), word({"fits", "放得下"})});
  for (const Memory& m : all)
    rows.push_back({way(m, language), gib(m.parameters), gib(m.gradients), gib(m.optimizer), gib(m.gathered), gib(m.activations),
                    gib(m.logits), gib(m.gpu()), gib(m.host),
                    target.gpu_bytes == 0 ? ""
                    : fits(m, target)     ? word({"yes", "是"})
                                          : word({"no", "否"})});
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
                      {"flash", training.flash}};
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
