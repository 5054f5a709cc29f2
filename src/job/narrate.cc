#include "job/narrate.h"

#include <sys/wait.h>

#include <map>

#include <fmt/format.h>

#include "base/text.h"
#include "base/unicode.h"
#include "codes/code.h"
#include "diagnosis/logs/verdict.h"
#include "diagnosis/rank_end.h"
#include "job/findings_text.h"
#include "job/stall_text.h"
#include "logs/escape.h"
#include "os/process.h"

namespace phalanx::job {
namespace {

using base::Bilingual;
using base::Language;

// {} are filled in order; both languages take the same arguments.
template <typename... Args>
std::string say(Language language, Bilingual text, const Args&... args) {
  return fmt::format(fmt::runtime(text.in(language)), args...);
}

std::string how_it_ended(int status, Language language) {
  if (WIFSIGNALED(status)) return say(language, {"killed by {}", "被 {} 杀死"}, os::signal_name(WTERMSIG(status)));
  return say(language, {"exited with code {}", "以退出码 {} 结束"}, WEXITSTATUS(status));
}

std::string host_name(const State& state, size_t host) { return state.job.hosts[host].target.name; }

std::string seconds(os::nanoseconds duration) {
  double s = static_cast<double>(duration.count()) / 1e9;
  return s < 0.0095 ? fmt::format("{:.1f} ms", s * 1e3) : fmt::format("{:.2f} s", s);
}

struct Words {
  const State& state;
  Language language;

  std::string operator()(const WaitingForGpuMemory& n) const {
    return say(language,
               {"{}: waiting for the driver to release the GPU memory of ranks that have exited", "{}：等待驱动释放已退出 rank 的显存"},
               host_name(state, n.host));
  }
  std::string operator()(const Restarting& n) const {
    std::string text;
    for (const Replaced& r : n.replaced) {
      if (r.by.empty()) text += say(language, {"continuing without {}; ", "不再使用 {}；"}, r.name);
      else text += say(language, {"{1} replaces {0}; ", "{1} 替换 {0}；"}, r.name, r.by);
    }
    if (n.before_start) return text + say(language, {"checking again", "重新检查"});
    if (n.sooner)
      return text + say(language, {"restarting in at most {}: restart {} of {}", "最多 {} 后重新启动：第 {} 次，共 {} 次"},
                        base::format_duration(n.wait), n.attempt, n.attempt + n.restarts_left);
    return text + say(language, {"restarting in {}: restart {} of {}", "{} 后重新启动：第 {} 次，共 {} 次"}, base::format_duration(n.wait),
                      n.attempt, n.attempt + n.restarts_left);
  }
  std::string operator()(const NotRestarting& n) const {
    if (n.why == NotRestarting::Why::kRepeats)
      return say(language,
                 {"not restarting: the program failed twice in the same way at the same step", "不再重启：程序两次在同一步以同样方式失败"});
    return say(language,
               {"not restarting: {} restart{} used, the limit set by --max-restarts", "不再重启：--max-restarts 允许的 {0} 次已用完"},
               n.restarts, n.restarts == 1 ? "" : "s");
  }
  std::string operator()(const NotSuspended&) const {
    return say(language, {"a run cannot be suspended, because its hosts would consider the launcher dead; Ctrl-C stops it",
                          "运行不能被挂起（各主机会认为启动器已失联）；按 Ctrl-C 停止"});
  }
  std::string operator()(const Concerns& n) const { return concerns(state, n.from, language); }
  std::string operator()(const RunStarted& n) const {
    return say(language, {"{} rank{} on {} host{}, rendezvous at {}:{}", "{0} 个 rank，{2} 台主机，会合地址 {4}:{5}"}, n.world,
               n.world == 1 ? "" : "s", n.hosts, n.hosts == 1 ? "" : "s", n.address, n.port);
  }
  std::string operator()(const WaitingForStore& n) const {
    return say(language, {"waiting for {}: never connected to the store", "正在等待 {}：从未连接到 store"},
               name_ranks(*state.plan, n.missing, language));
  }
  std::string operator()(const WaitingForHosts& n) const {
    std::string names;
    for (size_t h : n.hosts) names += (names.empty() ? "" : ", ") + host_name(state, h);
    return say(language, {"still connecting to {}", "仍在连接 {}"}, names);
  }
  std::string operator()(const StoppingRanks& n) const {
    std::string ranks = name_ranks(*state.plan, n.awaited, language), grace = base::format_duration(n.grace);
    if (!n.by_operator)
      return say(language, {"stopping {}: SIGTERM, and SIGKILL after {}", "正在停止 {}：先 SIGTERM，{} 后 SIGKILL"}, ranks, grace);
    return say(language,
               {"SIGTERM to all ranks; waiting up to {} for {}; Ctrl-C again kills at once",
                "已向所有 rank 发送 SIGTERM；最多等待 {}：{}；再按一次 Ctrl-C 立即杀死"},
               grace, ranks);
  }
  std::string operator()(const KillingRanks& n) const {
    return say(language, {"SIGKILL to {}: still running after SIGTERM", "向 {} 发送 SIGKILL：SIGTERM 之后仍在运行"},
               name_ranks(*state.plan, n.awaited, language));
  }
  std::string operator()(const HostLeftovers& n) const {
    std::string text = say(language, {"{}: killed {} processes left behind by the ranks", "{}：已杀死 rank 遗留的 {} 个进程"},
                           host_name(state, n.host), n.killed);
    if (n.left > 0)
      text += say(language, {"; {} could not be killed (in uninterruptible sleep?)", "；{} 个无法杀死（不可中断睡眠？）"}, n.left);
    return text;
  }
  std::string operator()(const Stalled& n) const { return stall_text(state, n, language); }
  std::string operator()(const Slow& n) const { return slow_text(state, n, language); }
  std::string operator()(const GoesOn& n) const {
    return say(language, {"the run continues after a stall of {}", "停滞 {} 之后，运行已继续"},
               base::format_duration(std::chrono::duration_cast<std::chrono::seconds>(n.stood)));
  }
  std::string operator()(const HostTrouble& n) const { return host_name(state, n.host) + ": " + base::replace_all(n.text, "\n", "\n    "); }
};

// "rank 3 (h2, local 1) exited with code 1 at train.py:42 (step) 0.4 ms before any other"
std::string what_happened(const State& state, const Verdict& v, Language language) {
  std::string text = name_rank(*state.plan, v.rank) + " ";
  if (v.code == "RUN-LEFT-EARLY")
    return text + say(language, {"exited cleanly while other ranks were still running, and they failed because it was gone",
                                 "在其他 rank 仍在运行时正常退出，其他 rank 因此失败"});
  text += how_it_ended(v.status, language);
  if (!v.where.empty()) text += say(language, {" at {}", "（{}）"}, v.where);
  if (v.lead) text += say(language, {" {} before any other", "，比其他 rank 早 {}"}, seconds(*v.lead));
  return text;
}

// A code of its own says more than the way it ended.
bool tells_more(std::string_view code) { return !code.empty() && code != "RUN-EXIT-CODE" && code != "RUN-EXCEPTION"; }

base::Error explain_rank(const State& state, const Verdict& v, const std::string& last_lines, const std::string& log, Language language) {
  std::string text = what_happened(state, v, language);
  auto add = [&](int count, Bilingual some) {
    if (count > 0) text += "; " + say(language, some, count, count == 1 ? "" : "s");
  };
  add(v.stopped, {"{} rank{} stopped by phalanx", "{} 个 rank 由 phalanx 停止"});
  add(v.also_failed, {"{} rank{} failed as a consequence", "{} 个 rank 随后失败"});
  add(v.lost, {"{} rank{} lost with their host", "{} 个 rank 随主机丢失"});
  base::Error error = base::fail(base::ErrorKind::kJobFailed, std::move(text));
  const codes::Code* words = codes::find(v.code);
  if (tells_more(v.code) && words) {
    error.cause = fmt::format("{}: {}", v.code, words->title.in(language));
    if (!v.evidence.empty()) error.cause += "\n    " + logs::strip_escapes(v.evidence);
  }
  std::string said = diagnosis::error_file_message(v.error_file);
  if (said.empty()) said = last_lines;
  said = logs::strip_escapes(said);  // colours say nothing here, and as \x1b[31m they hide the words
  if (base::trim(said).empty()) said.clear();
  if (!said.empty() && v.code != "RUN-LEFT-EARLY")
    error.cause += (error.cause.empty() ? "" : "\n  ") + say(language, {"its last output:", "它最后的输出："}) + "\n    " +
                   base::replace_all(base::trim(said), "\n", "\n    ");
  if (!log.empty()) error.hint = tells_more(v.code) ? "phalanx explain " + v.code : "less " + base::shell_quote(log);
  return error;
}

// "h1: X" and "h2: X" with the same cause are one error of "h1, h2".
std::vector<base::Error> fold(const State& state, const std::vector<base::Error>& errors) {
  std::vector<base::Error> out;
  std::vector<std::string> bodies;  // of out, without the host
  for (const base::Error& error : errors) {
    std::string host;
    for (const HostRequest& request : state.job.hosts)
      if (error.message.rfind(request.target.name + ": ", 0) == 0) host = request.target.name;
    std::string body = error.message.substr(host.empty() ? 0 : host.size() + 2) + "\n" + error.cause;
    size_t same = 0;
    while (same < out.size() && (host.empty() || bodies[same] != body)) ++same;
    if (same < out.size()) {
      out[same].message.insert(out[same].message.size() - (error.message.size() - host.size()), ", " + host);
      continue;
    }
    out.push_back(error);
    bodies.push_back(std::move(body));
  }
  return out;
}

}  // namespace

std::string name_rank(const Plan& plan, int rank) {
  return fmt::format("rank {} ({}, local {})", rank, plan.hosts[static_cast<size_t>(plan.host_of(rank))].name, plan.local_rank(rank));
}

std::string name_ranks(const Plan& plan, const std::vector<int>& ranks, Language language) {
  std::map<int, std::vector<int>> by_host;
  for (int rank : ranks) by_host[plan.host_of(rank)].push_back(rank);
  std::string text;
  for (const auto& [host, some] : by_host)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", base::format_ranges(some), plan.hosts[static_cast<size_t>(host)].name);
  if (language == Language::kChinese) return "rank " + text;
  return (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

std::string narrate(const State& state, const Note& note, Language language) {
  return base::printable_lines(std::visit(Words{state, language}, note));  // a note may quote a host: Trouble, for one
}

std::vector<base::Error> explain(const State& state, const Verdict& verdict, const std::string& last_lines, const std::string& log,
                                 Language language) {
  switch (verdict.kind) {
    case Verdict::Kind::kDone:
    case Verdict::Kind::kPlanned: return {};
    case Verdict::Kind::kRankFailed: return {explain_rank(state, verdict, last_lines, log, language)};
    case Verdict::Kind::kInterrupted:
      return {base::fail(base::ErrorKind::kInterrupted, say(language, {"interrupted by the operator", "被操作者中断"}))};
    case Verdict::Kind::kHung: return {stall_error(state, verdict, language)};
    case Verdict::Kind::kChecked: return verdict.refusals;
    case Verdict::Kind::kRefused: return verdict.unfit ? found_errors(state, language) : fold(state, verdict.refusals);
    case Verdict::Kind::kHostLost: break;
  }
  std::vector<base::Error> errors = verdict.refusals;
  if (verdict.suspended) {
    errors.front().message += say(language, {"; {} ranks were stopped", "；{} 个 rank 被停止"}, verdict.lost + verdict.stopped);
    return errors;
  }
  int with_it = 0;
  const PlannedHost& host = state.plan->hosts[verdict.host];
  for (int r = host.first_rank; r < host.first_rank + host.ranks; ++r) with_it += state.ranks[static_cast<size_t>(r)].lost;
  std::string& message = errors.front().message;
  message += say(language, {"; {} rank{} lost with it", "；随之丢失 {0} 个 rank"}, with_it, with_it == 1 ? "" : "s");
  if (verdict.lost > with_it) message += say(language, {", {} with other hosts", "，另有 {} 个随其他主机丢失"}, verdict.lost - with_it);
  message += say(language, {", {} stopped by phalanx", "，{} 个由 phalanx 停止"}, verdict.stopped);
  return errors;
}

}  // namespace phalanx::job
