#include "cli/end_line.h"

#include <fmt/format.h>

#include "base/json_fields.h"
#include "base/text.h"
#include "words/message.h"

namespace phalanx::cli {

using words::tr;

std::string end_line(const job::State& state, const job::Verdict& verdict, const base::Json& progress, std::chrono::milliseconds took,
                     base::Language language) {
  if (verdict.kind != job::Verdict::Kind::kDone || !state.plan) return "";
  const size_t hosts = state.plan->hosts.size();
  std::string text = tr(language, "{} rank{} on {} host{} finished in {}", state.plan->world, state.plan->world == 1 ? "" : "s", hosts,
                        hosts == 1 ? "" : "s", base::format_duration(took));
  if (verdict.attempt > 0) text += tr(language, ", after {} restart{}", verdict.attempt, verdict.attempt == 1 ? "" : "s");
  if (!progress.is_object()) return text;
  std::string figures;
  std::optional<int64_t> step = base::get_int(progress, "step"), total = base::get_int(progress, "total");
  if (step) figures = tr(language, "step {}", fmt::format("{}", *step) + (total ? fmt::format("/{}", *total) : ""));
  if (std::optional<double> loss = base::get_number(progress, "loss"))
    figures += fmt::format("{}loss {:.4g}", figures.empty() ? "" : words::Text{", ##label"}.in(language), *loss);
  return text + (figures.empty() ? "" : tr(language, "; {}", figures));
}

}  // namespace phalanx::cli
