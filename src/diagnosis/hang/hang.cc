#include "diagnosis/hang/hang.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/text.h"
#include "codes/code.h"
#include "codes/slots.h"
#include "diagnosis/hang/deadlock.h"
#include "diagnosis/hang/hang_links.h"
#include "diagnosis/hang/seen.h"
#include "words/said.h"

namespace phalanx::diagnosis {
namespace {

using doctor::Words;
using words::tr;

class Judge {
 public:
  explicit Judge(const HangInput& input) : in_(input) {
    for (const RankView& r : input.ranks) {
      Seen seen{&r, {}};
      if (r.then) seen.activity = activity_of(r.first ? &*r.first : nullptr, *r.then, input.between_s);
      (r.exited ? gone_ : seen_).push_back(std::move(seen));
    }
  }

  Diagnosis verdict() {
    bool found = left_early() || held() || link() || operations() || cycle();
    if (!found) unknown();
    tell_places();
    tell_missing();
    for (const Seen& s : seen_) {
      if (std::find(out_.ranks.begin(), out_.ranks.end(), s.view->rank) == out_.ranks.end()) continue;
      out_.stack_seen = out_.stack_seen || !s.view->stack.empty();
      out_.line_seen = out_.line_seen || !s.place().empty();
    }
    return std::move(out_);
  }

 private:
  std::string name(const RankView& r) const { return fmt::format("rank {} ({})", r.rank, in_.hosts.at(r.host)); }

  void name_rank(const RankView& r) {
    out_.ranks.push_back(r.rank);
    if (!out_.host) out_.host = r.host;
  }

  // Ranks that wait for others, not ranks that still save or evaluate at the end.
  bool somebody_waits() const {
    return std::any_of(seen_.begin(), seen_.end(), [](const Seen& s) {
      return s.activity.doing == Doing::kCollective || s.activity.doing == Doing::kStore || s.activity.doing == Doing::kReading;
    });
  }

  bool left_early() {
    if (!somebody_waits()) return false;
    for (const Seen& s : gone_) {
      if (s.view->exit_code != 0) continue;
      name_rank(*s.view);
      out_.code = "RUN-LEFT-EARLY";
      std::string ago = fmt::format("{:.0f}", s.view->exited_ago_s);
      out_.evidence = tr("it exited with code 0 {} s ago, and the other ranks have made no progress since", ago);
      return true;
    }
    return false;
  }

  // The page's first command that needs no more than what was observed.
  void advise(const codes::Observed& seen) { out_.fix = codes::filled_command(codes::get(out_.code), seen); }

  // What holds a rank from outside, or by its storage or memory: certain whatever the others do.
  bool held() {
    static constexpr std::pair<Doing, const char*> kCodes[] = {{Doing::kFrozen, "HANG-STOPPED"},
                                                               {Doing::kStopped, "HANG-STOPPED"},
                                                               {Doing::kTraced, "HANG-TRACED"},
                                                               {Doing::kDisk, "HANG-DISK"},
                                                               {Doing::kSwapping, "HANG-SWAPPING"}};
    for (const auto& [doing, code] : kCodes) {
      for (const Seen& s : seen_) {
        if (s.activity.doing != doing) continue;
        if (out_.ranks.empty()) {
          out_.evidence = s.activity.words;
          out_.code = code;
          if (doing == Doing::kStopped) advise({{"pid", std::to_string(s.activity.pid)}});
        }
        name_rank(*s.view);
      }
      if (!out_.ranks.empty()) return true;
    }
    return false;
  }

  bool link() {
    std::optional<BrokenLink> b = broken_link(in_);
    if (!b) return false;
    const machine::SocketSample& s = b->socket;
    const RankView& from = in_.ranks[static_cast<size_t>(b->from)];
    std::string to = b->to >= 0 ? name(in_.ranks[static_cast<size_t>(b->to)]) : b->to_host ? in_.hosts[*b->to_host] : s.remote_address;
    if (b->kind == BrokenLink::Kind::kPeerDoesNotRead && some_elsewhere()) return false;  // operations() says more of who does not read
    name_rank(from);
    if (b->to >= 0) out_.ranks.push_back(b->to);
    if (b->common_host) out_.host = b->common_host;
    const Words way = tr("{} to {}", s.local, s.remote);
    const int64_t tries = std::max(s.retransmits, s.backoff);
    switch (b->kind) {
      case BrokenLink::Kind::kPath:
      case BrokenLink::Kind::kLargePackets: {
        bool large = b->kind == BrokenLink::Kind::kLargePackets;
        out_.code = large ? "NET-MTU-HOLE" : "HANG-LINK";
        out_.evidence = tr("its connection to {} is blocked: {}, {} segments sent but not acknowledged, {} consecutive retransmissions{}",
                           to, way, s.unacked, tries,
                           large             ? tr("; small packets pass, packets of {} bytes do not", s.segment_bytes)
                           : b->data_arrives ? tr("; the data arrives, but the acknowledgements are lost")
                                             : Words{});
        break;
      }
      case BrokenLink::Kind::kLossy:
        out_.code = "NET-LOSS";
        out_.evidence =
            tr("its connection to {} loses packets: {}, {} segments sent again so far, {} consecutive retransmissions; {} answers", to, way,
               s.total_retransmits, tries, s.remote_address);
        break;
      case BrokenLink::Kind::kPeerDoesNotRead:
        out_.code = "HANG-PEER-STOPPED";
        out_.evidence =
            tr("{} has stopped reading the data that it sends: {}, receive window closed, {} bytes queued", to, way, s.send_queue);
        break;
      case BrokenLink::Kind::kNoAnswer:
        out_.code = "HANG-CONNECT";
        out_.evidence = tr("it is connecting to {} ({}), without an answer after {} attempts", to, s.remote,
                           std::clamp<int64_t>(s.retransmits, 0, 1000) + 1);
        break;
    }
    if (!b->other_ranks.empty()) { out_.evidence += tr("; connections of ranks {} are blocked too", base::format_ranges(b->other_ranks)); }
    codes::Observed seen;
    if (b->to_host && *b->to_host != b->from_host) seen["hosts"] = fmt::format("{},{}", in_.hosts[b->from_host], in_.hosts[*b->to_host]);
    // Commands that take the address are typed on the host that cannot reach it, which is where a verdict about one host is read.
    if (out_.host == b->from_host && !s.remote_address.empty() && s.remote.size() > s.remote_address.size()) {
      seen["address"] = s.remote_address;
      seen["port"] = s.remote.substr(s.remote.rfind(':') + 1);
    }
    advise(seen);
    if (out_.fix.empty()) out_.fix = codes::filled_command(codes::get("HANG-LINK"), seen);
    return true;
  }

  bool some_elsewhere() const {
    bool in = false, out = false;
    for (const Seen& s : seen_) {
      in = in || s.activity.doing == Doing::kCollective;
      out = out || (s.known() && s.activity.doing != Doing::kCollective);
    }
    return in && out;
  }

  // What the ranks have asked of each other, by the source that tells the most.
  bool operations() {
    if (!in_.records.empty()) {
      recorded_ = compare_records(in_.records, records_of(seen_, true));
      if (told(*recorded_, recorded_->kind == Standstill::Kind::kMismatch)) return true;
    }
    if (in_.ras && told(judge_ras(of_this_run(*in_.ras, seen_, in_.hosts), nullptr, 0))) return true;
    const std::vector<RankRecord> seen = records_of(seen_, false);
    const Standstill v = compare_records(seen);
    if ((v.kind == Standstill::Kind::kMismatch && !all_in_collectives()) || !told(v)) return false;
    for (const Seen& s : seen_)
      if (s.view->rank == out_.ranks.front()) explain_absence(s, v);
    return true;
  }

  // Two groups may be in two collectives because of a rank that is not seen.
  bool all_in_collectives() const {
    return std::all_of(seen_.begin(), seen_.end(),
                       [](const Seen& s) { return s.activity.doing == Doing::kCollective && !s.activity.op.empty(); });
  }

  // Makes it the verdict, if it names ranks, or need not.
  bool told(const Standstill& v, bool without_ranks = false) {
    if (v.code.empty()) return false;
    for (int rank : v.culprits)
      if (static_cast<size_t>(rank) < in_.ranks.size()) name_rank(in_.ranks[static_cast<size_t>(rank)]);
    if (out_.ranks.empty() && !without_ranks) return false;
    out_.code = v.code;
    out_.evidence = v.evidence;
    for (const Words& note : v.notes) out_.details.push_back(note);
    return true;
  }

  void explain_absence(const Seen& odd, const Standstill& v) {
    if (v.kind != Standstill::Kind::kNotJoined) return;
    last_words(odd);
    if (odd.activity.pid > 0) advise({{"pid", std::to_string(odd.activity.pid)}});
  }

  // When it last sent anything to another rank, against the others.
  void last_words(const Seen& odd) {
    std::optional<int64_t> own, others;
    for (const Seen& s : seen_) {
      if (!s.view->then) continue;
      for (const machine::SocketSample& k : s.view->then->sockets) {
        if (k.state != "ESTABLISHED" || k.bytes_acked < 2) continue;
        std::optional<int64_t>& least = &s == &odd || s.view == odd.view ? own : others;
        if (!least || k.last_sent_ms < *least) least = k.last_sent_ms;
      }
    }
    if (!own || !others || *own <= *others) return;
    std::string ago = fmt::format("{:.1f}", static_cast<double>(*own) / 1000);
    out_.evidence += tr("; it last sent data {} s ago, earlier than any other rank", ago);
  }

  // Nobody stands out, but it is proved that nobody can go on.
  bool cycle() {
    if (!proved_deadlock(in_)) return false;
    out_.code = "HANG-CIRCULAR";
    std::string apart = fmt::format("{:.1f}", in_.between_s);
    out_.evidence = tr("every rank waits for another one, and in {} s none has used the CPU or received a byte", apart);
    return true;
  }

  void unknown() {
    out_.code = "HANG-UNKNOWN";
    bool all =
        !seen_.empty() && std::all_of(seen_.begin(), seen_.end(), [](const Seen& s) { return s.activity.doing == Doing::kCollective; });
    if (all && recorded_ && recorded_->kind == Standstill::Kind::kTogether) {
      out_.code = recorded_->code;
      out_.evidence = recorded_->evidence;
    } else if (all) {
      out_.evidence = tr("all ranks wait in the same collective; no connection between them is blocked and no process is stopped");
    } else {
      out_.evidence = tr("no rank differs from the others");
    }
  }

  // "ranks 0, 2–3: train.py:30 (step)": equal places folded, the rarest first.
  void tell_places() {
    std::map<std::string, std::pair<std::vector<int>, Words>> places;
    for (const Seen& s : seen_) {
      std::string place = s.place();
      Words words{place, place};
      if (place.empty()) {
        words = s.known() ? s.activity.words : tr("state unknown");
      } else if (s.known()) {
        words = tr("{}, {}", place, s.activity.words);
      }
      auto& [ranks, shown] = places[words.english];
      ranks.push_back(s.view->rank);
      shown = words;
    }
    std::vector<const std::pair<std::vector<int>, Words>*> order;
    for (const auto& [key, value] : places) order.push_back(&value);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->first.size() < b->first.size(); });
    for (const auto* one : order) {
      std::string ranks = base::format_ranges(one->first);
      out_.details.push_back(tr("rank{} {}: {}", one->first.size() == 1 ? "" : "s", ranks, one->second));
    }
    std::set<int64_t> steps;
    for (const RankView& r : in_.ranks)
      if (r.step) steps.insert(*r.step);
    if (steps.size() < 2) return;
    std::vector<int> behind;
    for (const RankView& r : in_.ranks)
      if (r.step && *r.step == *steps.begin()) behind.push_back(r.rank);
    std::string some = base::format_ranges(behind);
    out_.details.push_back(
        tr("rank{} {} last reported step {}, the others step {}", behind.size() == 1 ? "" : "s", some, *steps.begin(), *steps.rbegin()));
  }

  void tell_missing() {
    for (const auto& [host, why] : in_.unanswered) out_.missing.push_back(tr("{} did not answer: {}", in_.hosts.at(host), why));
    bool frames = false, stacks = false;
    for (const Seen& s : seen_) {
      stacks = stacks || !s.place().empty();
      if (!s.view->then) continue;
      for (const machine::ProcessSample& p : s.view->then->processes)
        for (const machine::ThreadSample& t : p.threads) frames = frames || !t.frames.empty();
    }
    if (out_.certain()) return;
    if (!frames) out_.missing.push_back(tr("stacks of the ranks: no permission to read their memory (ptrace_scope, or another user)"));
    if (!stacks) out_.missing.push_back(no_lines());
    if (in_.records.empty())
      out_.missing.push_back(
          tr("PyTorch's flight recorder: run with --env TORCH_NCCL_TRACE_BUFFER_SIZE=2000 --env TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/tmp/fr_ "
             "--env TORCH_NCCL_DEBUG_INFO_PIPE_FILE=/tmp/fr_"));
  }

  // Why no line of Python is known: what the reading of some rank failed on, else what would help.
  Words no_lines() const {
    for (const Seen& s : seen_)
      if (s.view->then)
        for (const machine::ProcessSample& p : s.view->then->processes)
          if (!p.python_problem.empty()) {
            Words why{p.python_problem, words::said_in(base::Language::kChinese, p.python_problem)};
            return tr("the current line of the Python code: {} (process {}). Or run with --python-hook", why, p.pid);
          }
    return tr("the current line of the Python code: run with --python-hook, or install py-spy on the hosts");
  }

  const HangInput& in_;
  std::vector<Seen> seen_, gone_;
  std::optional<Standstill> recorded_;  // by the flight recorders
  Diagnosis out_;
};

}  // namespace

Diagnosis judge_hang(const HangInput& input) { return Judge(input).verdict(); }

std::vector<int> ranks_to_ask(const HangInput& input, const Diagnosis& verdict) {
  constexpr size_t kMostAsked = 64;
  constexpr size_t kOthers = 2;
  std::vector<int> ask;
  auto asked = [&](int rank) { return std::find(ask.begin(), ask.end(), rank) != ask.end(); };
  for (int rank : verdict.ranks)
    if (!input.ranks[static_cast<size_t>(rank)].exited && ask.size() < kMostAsked) ask.push_back(rank);
  size_t others = 0;
  for (const RankView& r : input.ranks) {
    if (r.exited || asked(r.rank) || ask.size() >= kMostAsked || (verdict.certain() && others >= kOthers)) continue;
    ask.push_back(r.rank);
    ++others;
  }
  return ask;
}

}  // namespace phalanx::diagnosis
