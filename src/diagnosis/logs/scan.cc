#include "diagnosis/logs/scan.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "base/unicode.h"
#include "diagnosis/logs/known_message.h"
#include "diagnosis/logs/line.h"
#include "diagnosis/logs/rebuild.h"
#include "diagnosis/logs/scan_words.h"
#include "diagnosis/logs/segments.h"
#include "logs/nccl/log.h"

namespace phalanx::diagnosis {
namespace {

constexpr size_t kMostLookups = 1024;  // of lines in the catalogue, for a file
constexpr size_t kMostSources = 256;   // with an open traceback at a time
constexpr uint64_t kSummaryLines = 4;  // of torchrun's summary: from the rank to its exit code

// Equal for events of which only the first few are kept.
using EventKey = std::tuple<const Signature*, std::string, int, int>;
EventKey key_of(const LogEvent& event) { return {event.signature, event.source, event.rank, event.local_rank}; }

// Exceptions of one writer that Python printed as one story: each raised from the one before, or while that was handled. What a signature
// knows explains the others; where none is known, the last one ended the program. ("Empty" raised from a queue's get() is no cause if
// "DataLoader worker exited unexpectedly" follows from it.)
struct Chain {
  bool goes_on = false;           // Python said that another one follows
  bool known = false;             // a signature knew one of them
  std::optional<size_t> unknown;  // event of the last that none knew
};

}  // namespace

std::string LogEvent::raised_at() const {
  const std::string inside = innermost.empty() ? where : innermost + " " + where;
  return module.empty() ? inside : module + " " + inside;
}

class LogScan::Matcher : public ScanMatcher {};

// What is known of the file being read.
struct LogScan::File {
  LogFile info;
  size_t number = 0;
  LogFacts& facts;
  Matcher& matcher;
  LineRebuilder rebuilder;
  logs::NcclLog& nccl;
  std::string buffer{};
  uint64_t line = 1;
  bool unended = false;   // the last byte was no "\n"
  bool skipping = false;  // the rest of a line that was too long
  std::map<std::string, Traceback> open{};
  std::map<std::string, Chain> chains{};
  struct Kept {
    uint64_t count = 0;
    size_t last = 0;  // event
  };
  std::map<EventKey, Kept> kept{};
  std::vector<LogEvent> warnings{};  // that no signature knows
  size_t lookups = 0;                // in the catalogue
  std::string tail{};                // the last bytes of what was walked
  std::optional<int64_t> time{};
  int summary_rank = -1;
  std::string summary_host{};
  uint64_t summary_line = 0;
  std::vector<LiteralSearch::Hit> hits{};  // in the block

  void take(std::string_view bytes);
  void process(std::string_view block);
  void rebuild(std::string_view block);
  void walk(std::string_view block);
  void see_rank(std::string_view text);
  void look(std::string_view block, size_t begin, size_t end, const std::vector<uint32_t>& ids);
  SignatureMatch match_line(std::string_view whole, std::string_view text, const std::vector<uint32_t>& ids);
  void unexplained(std::string_view text);
  void look_up(std::string_view text, const std::vector<uint32_t>& ids);
  Chain& chain_of(const std::string& source);
  void remember(SignatureMatch match, const LogLine& line, const Traceback* traceback, std::string_view block, size_t begin);
  void forget(size_t event);
  void learn(const SignatureMatch& match, int rank, const std::string& host);
  void count(const Signature* signature, int rank);
};

void LogScan::File::take(std::string_view bytes) {
  info.bytes += bytes.size();
  if (!bytes.empty()) unended = bytes.back() != '\n';
  if (skipping) {
    size_t end = segment_end(bytes, 0);
    bytes.remove_prefix(end);
    if (bytes.empty()) return;
    skipping = false;
  }
  buffer += bytes;
  size_t end = buffer.rfind('\n');
  if (end == buffer.npos) end = buffer.rfind('\r');
  if (end != buffer.npos) {
    process(std::string_view(buffer).substr(0, end + 1));
    buffer.erase(0, end + 1);
  }
  if (buffer.size() <= kLongestLine) return;
  ++info.cut;
  process(std::string_view(buffer).substr(0, kLongestLine));
  buffer.clear();
  skipping = true;
}

void LogScan::File::process(std::string_view block) {
  if (block.find('\x1b') == block.npos) return rebuild(block);
  std::string clean = without_escapes(block);
  rebuild(clean);
}

void LogScan::File::rebuild(std::string_view block) {
  std::optional<std::string> whole = rebuilder.rebuild(block, hits);
  if (whole) block = *whole;
  walk(block);
  if (block.size() >= kProgressTail) tail.assign(block.substr(block.size() - kProgressTail));
  else tail += block;
  if (tail.size() > 2 * kProgressTail) tail.erase(0, tail.size() - kProgressTail);
}

// Goes from one line worth looking at to the next: those with a hit, and all while a traceback is open.
void LogScan::File::walk(std::string_view block) {
  if (lookups > kMostLookups) std::erase_if(hits, [&](const auto& hit) { return matcher.reports_trouble(hit.literal); });
  std::vector<uint32_t> ids;
  size_t at = 0, hit = 0;  // `line` is the number of the line that holds `at`
  while (at < block.size()) {
    size_t begin = at;
    if (open.empty()) {
      if (hit == hits.size()) break;
      begin = std::max(at, segment_begin(block, hits[hit].end - 1));
    }
    line += static_cast<uint64_t>(std::count(block.begin() + at, block.begin() + begin, '\n'));
    size_t end = segment_end(block, begin);
    ids.clear();
    for (; hit < hits.size() && hits[hit].end <= end; ++hit) {
      const uint32_t literal = hits[hit].literal;
      if (literal < matcher.first_bug()) ids.push_back(literal);
      else see_bug_literal(facts.bugs, literal - matcher.first_bug(), block.substr(hits[hit].end, end - hits[hit].end), number, line);
    }
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    if (!ids.empty() || !open.empty()) look(block, begin, end, ids);
    if (end < block.size() && block[end] == '\n') ++line;
    at = end + 1;
  }
  if (at < block.size()) line += static_cast<uint64_t>(std::count(block.begin() + at, block.end(), '\n'));
}

// A line that has nothing but torch's tag: only its rank is of interest.
void LogScan::File::see_rank(std::string_view text) {
  std::string_view rest = text.substr(text.find(kExtra[kRankTag]) + kExtra[kRankTag].size());
  if (auto rank = to_rank(rest.substr(0, rest.find("]:")))) facts.ranks.insert(*rank);
}

void LogScan::File::look(std::string_view block, size_t begin, size_t end, const std::vector<uint32_t>& ids) {
  std::string_view text = block.substr(begin, end - begin);
  if (text.size() > kLongestLine) {
    ++info.cut;
    text = text.substr(0, kLongestLine);
  }
  uint32_t extra = matcher.first_extra();
  if (std::any_of(ids.begin(), ids.end(), [&](uint32_t id) { return id >= extra + kNccl; })) {
    nccl.line(text, nccl_line(number, line));
    bool only_nccl = ids[0] >= extra + kNccl;
    if (only_nccl && std::binary_search(ids.begin(), ids.end(), extra + kNcclWarn)) unexplained(text);
    if (open.empty() && only_nccl) return;
  }
  if (open.empty() && ids.size() == 1 && ids[0] == extra + kRankTag) return see_rank(text);
  if (open.empty() && !ids.empty() && ids.front() >= extra + kTrouble && ids.back() < extra + kTroubleEnd) return look_up(text, ids);
  LogLine read = read_log_line(text);
  if (read.time) time = read.time;
  if (read.rank >= 0 && read.rank <= kMostRanks) facts.ranks.insert(read.rank);
  auto has = [&](Extra which) { return std::binary_search(ids.begin(), ids.end(), extra + which); };
  bool head = has(kHead) && base::trim(read.text).ends_with("last):");
  std::string source = read.source();
  std::optional<Traceback> ended;
  std::optional<size_t> frame = has(kFrame) && !open.contains(source) ? frame_indent(read.text) : std::nullopt;
  if (head || frame) {
    if (open.size() >= kMostSources) open.clear();
    open.insert_or_assign(source, head ? Traceback(line, ignored_before(block, begin), read.text) : Traceback::without_head(*frame));
    if (head) return;
  }
  if (auto found = open.find(source); found != open.end()) {
    Traceback::State state = found->second.add(read.text);
    if (state == Traceback::State::kEnd) ended = found->second;
    if (state != Traceback::State::kInside) open.erase(found);
  }
  if (ended && ended->ignored()) return;
  if (has(kCause) || has(kHandling))
    if (auto chain = chains.find(source); chain != chains.end()) chain->second.goes_on = true;
  SignatureMatch match = match_line(text, read.text, ids);
  if (!match.signature && has(kNcclWarn) && ids[0] < extra + kNccl) unexplained(text);
  else if (!match.signature && !ended) look_up(text, ids);
  if (!ended) {
    if (match.signature) remember(std::move(match), read, nullptr, block, begin);
    return;
  }
  // An exception whose message mentions a fact is an exception all the same.
  if (match.is_fact()) remember(std::exchange(match, {}), read, nullptr, block, begin);
  Chain& chain = chain_of(source);
  if (match.signature) {
    chain.known = chain.known || match.signature->role == Role::kRoot || match.signature->role == Role::kSymptom;
    remember(std::move(match), read, &*ended, block, begin);
  } else if (!chain.known) {
    match.signature = &traceback_signature();
    size_t before = facts.events.size();
    remember(std::move(match), read, &*ended, block, begin);
    if (facts.events.size() == before) return;
    if (chain.unknown) forget(*chain.unknown);
    chain.unknown = before;
    return;
  }
  if (chain.known && chain.unknown) forget(*std::exchange(chain.unknown, {}));
}

// A warning that no signature knows: the last ones of a file are kept.
void LogScan::File::unexplained(std::string_view text) {
  const LogLine read = read_log_line(text);
  LogEvent event;
  event.signature = &warning_signature();
  event.file = number;
  event.line = line;
  event.place = nccl_line(number, line);
  event.text = std::string(base::trim(read.text.substr(0, kEventBytes)));
  event.rank = read.rank >= 0 ? read.rank : info.rank;
  event.host = read.host.empty() ? info.host : std::string(read.host);
  event.source = read.source();
  if (warnings.size() == kMostUnexplained) warnings.erase(warnings.begin());
  warnings.push_back(std::move(event));
}

// A line that tells of trouble which no signature knows: where the catalogue has it, it is kept as NCCL's warnings are.
void LogScan::File::look_up(std::string_view text, const std::vector<uint32_t>& ids) {
  if (std::none_of(ids.begin(), ids.end(), [&](uint32_t id) { return matcher.reports_trouble(id); }) || ++lookups > kMostLookups) return;
  const codes::KnownMessage* known = known_message(text.substr(0, kEventBytes));
  if (known && (known->severity == "error" || !known->code.empty())) unexplained(text);
}

// whole: with the tags, where one belongs to the message. What is captured from words that were put back names no rank and no address.
SignatureMatch LogScan::File::match_line(std::string_view whole, std::string_view text, const std::vector<uint32_t>& ids) {
  SignatureMatch match = matcher.match(text, ids);
  if (!match.signature && !ids.empty() && text.size() != whole.size()) match = matcher.match(whole, ids);
  if (match.signature || ids.empty()) return match;
  match = matcher.match_cut(text, ids);
  std::erase_if(match.captures, [&](const auto& captured) { return text.find(captured.second) == text.npos; });
  return match;
}

// The chain that an exception of `source` belongs to: the one that goes on, or a new one.
Chain& LogScan::File::chain_of(const std::string& source) {
  if (chains.size() >= kMostSources) chains.clear();
  Chain& chain = chains[source];
  if (!std::exchange(chain.goes_on, false)) chain = {};
  return chain;
}

void LogScan::File::forget(size_t event) {
  LogEvent& gone = facts.events[event];
  for (LogCount& c : facts.counts)
    if (c.signature == gone.signature && c.count > 0) --c.count;
  --kept[key_of(gone)].count;
  gone.signature = nullptr;
}

void LogScan::File::learn(const SignatureMatch& match, int rank, const std::string& host) {
  auto nranks = match.captures.find("nranks");
  if (nranks != match.captures.end()) facts.world = std::max(facts.world, to_rank(nranks->second).value_or(0));
  if (match.signature->role != Role::kContext) return;
  if (match.captures.count("rank")) {
    summary_rank = rank;
    summary_line = line;
  } else if (match.captures.count("host")) {
    summary_host = host;
  }
}

void LogScan::File::count(const Signature* signature, int rank) {
  auto same = [&](const LogCount& c) { return c.signature == signature; };
  auto found = std::find_if(facts.counts.begin(), facts.counts.end(), same);
  if (found == facts.counts.end()) found = facts.counts.insert(facts.counts.end(), LogCount{signature, 0, {}});
  ++found->count;
  if (rank >= 0) found->ranks.insert(rank);
}

void LogScan::File::remember(SignatureMatch match, const LogLine& read, const Traceback* traceback, std::string_view block, size_t begin) {
  auto captured = [&](const char* name) {
    auto found = match.captures.find(name);
    return found == match.captures.end() ? std::string() : found->second;
  };
  LogEvent event;
  event.signature = match.signature;
  event.rank = rank_of_event(read, captured("rank"), info.rank);
  event.local_rank = to_rank(captured("local")).value_or(read.local_rank >= 0 ? read.local_rank : info.local_rank);
  event.host = captured("host");
  if (event.host.empty()) event.host = read.host.empty() ? info.host : std::string(read.host);
  learn(match, event.rank, event.host);
  if (match.captures.count("exit") && event.rank < 0 && summary_rank >= 0 && line - summary_line <= kSummaryLines) {
    event.rank = summary_rank;
    if (event.host.empty()) event.host = summary_host;
  }
  if (event.rank >= 0) facts.ranks.insert(event.rank);
  count(match.signature, event.rank);
  if (match.signature->role == Role::kContext || match.signature->role == Role::kBenign || facts.events.size() >= kMostEvents) return;
  event.source = read.source();
  Kept& same = kept[key_of(event)];
  bool late = ++same.count > kKeptEach;
  if (late && line < facts.events[same.last].line + kLate) return;
  event.file = number;
  event.line = line;
  event.place = nccl_line(number, line);
  event.text = excerpt(read.text, event.signature->literal, kEventBytes);
  event.time = read.time ? read.time : time_before(block, begin);
  if (!event.time) event.time = time;
  event.captures = std::move(match.captures);
  if (traceback) {
    event.traceback_line = traceback->first_line();
    event.where = traceback->where();
    if (traceback->innermost() != traceback->where()) event.innermost = traceback->innermost();
    if (event.text.find(": ") == event.text.npos && !traceback->code().empty()) event.where += ": " + traceback->code();
    event.module = traceback->module(), event.way = traceback->way();
  }
  if (late) {
    facts.events[same.last] = std::move(event);
    return;
  }
  same.last = facts.events.size();
  facts.events.push_back(std::move(event));
}

LogScan::LogScan() : matcher_(std::make_unique<Matcher>()), nccl_(std::make_unique<logs::NcclLog>()) {}
LogScan::~LogScan() = default;
LogScan::LogScan(LogScan&&) noexcept = default;

void LogScan::begin_file(LogFile file) {
  file.lines = file.bytes = file.cut = 0;
  if (file.rank >= 0) facts_.ranks.insert(file.rank);
  file_.reset(new File{.info = std::move(file),
                       .number = facts_.files.size(),
                       .facts = facts_,
                       .matcher = *matcher_,
                       .rebuilder = LineRebuilder(*matcher_),
                       .nccl = *nccl_});
}

void LogScan::feed(std::string_view bytes) { file_->take(bytes); }

void LogScan::end_file() {
  file_->process(std::string(std::exchange(file_->buffer, {})));
  file_->info.lines = file_->line - 1 + (file_->unended ? 1 : 0);
  auto lines_in_tail = static_cast<uint64_t>(std::count(file_->tail.begin(), file_->tail.end(), '\n'));
  for (ProgressMark& mark : marks_in(file_->tail, file_->number, file_->line - std::min(file_->line - 1, lines_in_tail)))
    facts_.marks.push_back(std::move(mark));
  std::move(file_->warnings.begin(), file_->warnings.end(), std::back_inserter(facts_.unexplained));
  facts_.files.push_back(std::move(file_->info));
  file_.reset();
}

LogFacts LogScan::finish() {
  std::erase_if(facts_.events, [](const LogEvent& event) { return !event.signature; });
  std::stable_sort(facts_.events.begin(), facts_.events.end(), [](const LogEvent& a, const LogEvent& b) { return a.place < b.place; });
  std::erase_if(facts_.counts, [](const LogCount& count) { return count.count == 0; });
  facts_.nccl = nccl_->finish();
  nccl_ = std::make_unique<logs::NcclLog>();
  return std::exchange(facts_, {});
}

}  // namespace phalanx::diagnosis
