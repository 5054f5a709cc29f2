#include "diagnosis/logs/line.h"

#include <array>

#include "base/text.h"

namespace phalanx::diagnosis {
namespace {

constexpr int kMostTags = 8;
constexpr size_t kMostHostBytes = 64;

bool digit(char c) { return c >= '0' && c <= '9'; }
bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A cursor over text: each function takes what it names, or nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  std::string_view rest() const { return text_.substr(at_); }
  bool done() const { return at_ == text_.size(); }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::string_view word) {
    if (!rest().starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  // At least one digit, at most `most`.
  std::optional<int> number(size_t most) {
    size_t n = 0;
    int value = 0;
    while (n < most && n < rest().size() && digit(rest()[n])) value = value * 10 + (rest()[n++] - '0');
    if (n == 0) return std::nullopt;
    at_ += n;
    return value;
  }
  std::string_view letters() {
    size_t n = 0;
    while (n < rest().size() && (letter(rest()[n]) || rest()[n] == '_')) ++n;
    std::string_view word = rest().substr(0, n);
    at_ += n;
    return word;
  }
  void blanks() {
    while (take(' ') || take('\t')) {}
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::optional<int> month_of(std::string_view name) {
  for (size_t i = 0; i < kMonths.size(); ++i)
    if (name == kMonths[i]) return static_cast<int>(i) + 1;
  return std::nullopt;
}

// Days as if every month had 31: only order matters, and differences within a month.
std::optional<int64_t> stamp(int month, int day, int64_t ms) {
  if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  return (int64_t{month - 1} * 31 + (day - 1)) * 86'400'000 + ms;
}

// "08:47:12", "08:47:12.345678", "08:47:12,345" → milliseconds of the day.
std::optional<int64_t> clock(Reader& in) {
  auto hours = in.number(2);
  if (!hours || !in.take(':')) return std::nullopt;
  auto minutes = in.number(2);
  if (!minutes || !in.take(':')) return std::nullopt;
  auto seconds = in.number(2);
  if (!seconds || *hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;
  int64_t ms = ((int64_t{*hours} * 60 + *minutes) * 60 + *seconds) * 1000;
  Reader fraction = in;
  if (fraction.take('.') || fraction.take(',')) {
    std::string_view digits = fraction.rest();
    size_t n = 0;
    int scale = 100;
    for (; n < digits.size() && digit(digits[n]); ++n, scale /= 10) ms += (digits[n] - '0') * scale;
    if (n > 0) {
      in.take('.') || in.take(',');
      in.take(digits.substr(0, n));
    }
  }
  return ms;
}

// "2024-11-20 08:47:12,345", "2024-11-20T08:47:12Z", "2024/11/20 08:47:12".
std::optional<int64_t> iso_time(Reader& in) {
  auto year = in.number(4);
  if (!year || *year < 1990 || !(in.take('-') || in.take('/'))) return std::nullopt;
  auto month = in.number(2);
  if (!month || !(in.take('-') || in.take('/'))) return std::nullopt;
  auto day = in.number(2);
  if (!day || !(in.take('T') || in.take(' '))) return std::nullopt;
  auto ms = clock(in);
  if (!ms) return std::nullopt;
  if (!in.take('Z')) {
    Reader zone = in;
    if ((zone.take('+') || zone.take('-')) && zone.number(2)) {
      zone.take(':');
      zone.number(2);
      in = zone;
    }
  }
  return stamp(*month, *day, *ms);
}

// "Nov 20 08:47:12", of syslog and journalctl.
std::optional<int64_t> syslog_time(Reader& in) {
  auto month = month_of(in.letters());
  if (!month || !in.take(' ')) return std::nullopt;
  in.blanks();
  auto day = in.number(2);
  if (!day || !in.take(' ')) return std::nullopt;
  auto ms = clock(in);
  return ms ? stamp(*month, *day, *ms) : std::nullopt;
}

// "Mon Nov 20 08:47:12 2023", of dmesg -T.
std::optional<int64_t> dmesg_time(Reader& in) {
  if (in.letters().size() != 3 || !in.take(' ')) return std::nullopt;
  auto time = syslog_time(in);
  if (!time || !in.take(' ') || !in.number(4)) return std::nullopt;
  return time;
}

// "E1120 08:47:12.345678901 ", of glog; c10 writes the month of "E321" without its zero.
std::optional<int64_t> glog_time(Reader& in) {
  if (!(in.take('E') || in.take('W') || in.take('I') || in.take('F'))) return std::nullopt;
  auto date = in.number(4);
  if (!date || *date < 101 || !in.take(' ')) return std::nullopt;
  auto ms = clock(in);
  return ms ? stamp(*date / 100, *date % 100, *ms) : std::nullopt;
}

bool address(std::string_view word) {
  int dots = 0;
  for (char c : word) {
    if (c == '.') ++dots;
    else if (!digit(c)) return false;
  }
  return dots == 3 && word.size() >= 7 && word.size() <= 15;
}

bool host_byte(char c) { return letter(c) || digit(c) || c == '-' || c == '.' || c == '_'; }

// Whether the word before ": " names a machine: hosts are numbered, programs and exceptions rarely are.
bool names_a_host(std::string_view word) {
  if (word.empty() || word.size() > kMostHostBytes) return false;
  if (address(word)) return true;
  bool number = false;
  for (char c : word) {
    if (!host_byte(c)) return false;
    number |= digit(c);
  }
  if (!number || !letter(word[0]) || word.find('_') != word.npos) return false;
  for (std::string_view no : {".so", ".py", ".cc", ".cpp", ".cu", ".sh", ".json", ".yaml"})
    if (word.find(no) != word.npos) return false;
  std::string lower = base::to_lower(word);
  for (std::string_view no : {"python", "lib", "line", "step", "epoch", "iter", "cuda", "error", "rank"})
    if (lower.find(no) != lower.npos) return false;
  return true;
}

bool take_bracket_tag(Reader& in, LogLine& line) {
  Reader tag = in;
  if (!tag.take('[')) return false;
  std::string_view name = tag.letters();
  auto number = tag.number(6);
  if (!number) return false;
  if (name.empty()) {  // Open MPI: [job,rank]<stderr>:
    auto rank = tag.take(',') ? tag.number(6) : std::nullopt;
    if (!rank || !tag.take("]<std") || tag.letters().size() > 3 || !tag.take(">:")) return false;
    line.rank = *rank;
  } else {
    if (name.size() > 32 || !tag.take("]:")) return false;
    if (name == "rank" || name == "Rank") line.rank = *number;
    else line.local_rank = *number;
  }
  in = tag;
  // One blank belongs to the tag; more are the program's.
  in.take(' ');
  return true;
}

// Determined: "fa88a9df [rank=5] || ".
bool take_determined(Reader& in, LogLine& line) {
  constexpr size_t kId = 8;
  std::string_view rest = in.rest();
  if (rest.size() < kId || rest.substr(0, kId).find_first_not_of("0123456789abcdef") != rest.npos) return false;
  Reader tag(rest.substr(kId));
  if (!tag.take(" [rank=")) return false;
  auto rank = tag.number(6);
  if (!rank || !tag.take("] || ")) return false;
  line.rank = *rank;
  in = tag;
  return true;
}

// What other launchers and collectors put in front: "[task 5] ", "[node-3]: ", "[stderr] ", "[pod/trainer-0/pytorch] ",
// "(RayTrainWorker pid=4021, ip=10.0.0.2) ". Only a rank is taken for one; anything else keeps writers apart.
bool take_label(Reader& in, LogLine& line) {
  constexpr size_t kMostLabel = 80;
  std::string_view rest = in.rest();
  if (rest.size() < 4 || (rest[0] != '[' && rest[0] != '(')) return false;
  bool round = rest[0] == '(';
  size_t end = rest.substr(0, kMostLabel).find(round ? ')' : ']');
  if (end == rest.npos) return false;
  std::string_view label = rest.substr(1, end - 1);
  Reader tag(rest.substr(end + 1));
  bool colon = tag.take(':');
  if (!tag.take(' ') && !(colon && tag.done())) return false;
  Reader inside(label);
  bool stream = label == "stderr" || label == "stdout" || label == "err" || label == "out";
  bool known = stream || label.starts_with("pod/") || (round && (label.find("pid=") != label.npos));
  if (!known && !round) {
    std::string_view name = inside.letters();
    if (name.size() < 3 || name.size() > 16) return false;
    if (inside.done() || std::string_view(" -=:/#").find(inside.rest()[0]) == std::string_view::npos) return false;
    inside.take(inside.rest()[0]);
    auto number = inside.number(6);
    if (!number || !inside.done()) return false;
    if ((name == "rank" || name == "Rank" || name == "global_rank") && line.rank < 0) line.rank = *number;
    known = true;
  }
  if (!known) return false;
  if (!stream && line.label.empty()) line.label = label;
  in = tag;
  return true;
}

bool take_time(Reader& in, LogLine& line) {
  Reader tag = in;
  bool bracket = tag.take('[');
  Reader iso = tag, dmesg = tag, uptime = tag;
  std::optional<int64_t> time = iso_time(iso);
  if (time) tag = iso;
  else if (bracket && (time = dmesg_time(dmesg))) tag = dmesg;
  else if (bracket) {  // seconds since the kernel's start: not a time that others share
    uptime.blanks();
    if (!uptime.number(9) || !uptime.take('.') || !uptime.number(9)) return false;
    tag = uptime;
  } else return false;
  if (bracket && !tag.take(']')) return false;
  tag.take(' ');
  tag.take("stdout F ") || tag.take("stderr F ") || tag.take("stdout P ") || tag.take("stderr P ") || tag.take("| ") || tag.take("- ");
  if (time) line.time = time;
  in = tag;
  return true;
}

bool take_syslog(Reader& in, LogLine& line) {
  Reader tag = in;
  auto time = syslog_time(tag);
  if (!time || !tag.take(' ')) return false;
  size_t space = tag.rest().find(' ');
  if (space == std::string_view::npos || space == 0 || space > kMostHostBytes) return false;
  std::string_view host = tag.rest().substr(0, space);
  for (char c : host)
    if (!host_byte(c)) return false;
  tag.take(host);
  tag.take(' ');
  tag.take("kernel: ");
  line.time = time;
  line.host = host;
  in = tag;
  return true;
}

// "3: " of srun --label, "gpu01: " of pdsh, "worker-1  | " of Docker Compose.
bool take_word_tag(Reader& in, LogLine& line) {
  std::string_view rest = in.rest();
  size_t end = 0;
  while (end < rest.size() && end <= kMostHostBytes && host_byte(rest[end])) ++end;
  std::string_view word = rest.substr(0, end);
  if (word.empty()) return false;
  Reader tag(rest.substr(end));
  if ((word == "stderr" || word == "stdout") && tag.take(": ")) {  // DeepSpeed and accelerate, when they capture
    in = tag;
    return true;
  }
  bool all_digits = word.find_first_not_of("0123456789") == word.npos;
  if (tag.take(": ") || (tag.take(':') && tag.done())) {
    if (all_digits && word.size() <= 6 && line.rank < 0) {
      line.rank = *Reader(word).number(6);
    } else if (line.host.empty() && names_a_host(word)) {
      line.host = word;
    } else {
      return false;
    }
    in = tag;
    return true;
  }
  Reader bar(rest.substr(end));
  bar.blanks();
  if (!line.host.empty() || !names_a_host(word) || !bar.take("| ")) return false;
  line.host = word;
  in = bar;
  return true;
}

// "gpu01:123:456 [0] NCCL INFO …": the host, nothing taken off.
void read_nccl_host(std::string_view text, LogLine& line) {
  size_t colon = text.find(':');
  if (colon == text.npos || colon == 0 || colon > kMostHostBytes) return;
  Reader in(text.substr(colon));
  if (!in.take(':') || !in.number(8) || !in.take(':') || !in.number(8) || !in.take(" [")) return;
  in.take('-');
  if (!in.number(3) || !in.take(']')) return;
  for (char c : text.substr(0, colon))
    if (!host_byte(c)) return;
  line.host = text.substr(0, colon);
}

bool take_tag(Reader& in, LogLine& line) {
  return take_bracket_tag(in, line) || take_determined(in, line) || take_time(in, line) || take_syslog(in, line) ||
         take_word_tag(in, line) || take_label(in, line);
}

// What is left behind the tags: it may tell a host and a time.
void read_text(std::string_view text, LogLine& line) {
  line.text = text;
  if (line.host.empty()) read_nccl_host(text, line);
  if (!line.time) line.time = find_time(text.substr(0, 40));
}

}  // namespace

std::string LogLine::source() const {
  std::string out;
  if (rank >= 0) out = "r" + std::to_string(rank);
  else if (local_rank >= 0) out = "l" + std::to_string(local_rank);
  if (!host.empty()) out.append("@").append(host);
  if (!label.empty()) out.append("#").append(label);
  return out;
}

LogLine read_log_line(std::string_view line) {
  LogLine out;
  Reader in(line);
  for (int i = 0; i < kMostTags; ++i)
    if (!take_tag(in, out)) break;
  read_text(in.rest(), out);
  return out;
}

bool has_tags(std::string_view line) {
  LogLine out;
  Reader in(line);
  if (take_tag(in, out)) return true;
  read_text(line, out);
  return !out.host.empty() || out.time;
}

// Looks at digits only: a time of the first form begins with one, that of glog with a letter and a digit. No time begins inside a word.
std::optional<int64_t> find_time(std::string_view text) {
  constexpr size_t kWithin = 80;
  text = text.substr(0, kWithin);
  auto in_word = [&](size_t at) { return letter(text[at]) || digit(text[at]); };
  for (size_t i = 0; i < text.size(); ++i) {
    if (!digit(text[i])) continue;
    std::optional<int64_t> time;
    if (i == 0 || !in_word(i - 1)) {
      Reader in(text.substr(i));
      time = iso_time(in);
    } else if (letter(text[i - 1]) && (i == 1 || !in_word(i - 2))) {
      Reader in(text.substr(i - 1));
      time = glog_time(in);
    }
    if (time) return time;
  }
  return std::nullopt;
}

std::string excerpt(std::string_view text, std::string_view words, size_t most) {
  constexpr std::string_view kGap = " … ";
  text = base::trim(text);
  const size_t at = text.size() > most ? text.find(words) : text.npos;
  if (at == text.npos || at + words.size() <= most) return std::string(text.substr(0, most));
  const size_t head = most / 6, rest = most - head - kGap.size(), before = rest / 6;  // a report shows half of it
  const size_t begin = std::max(at - std::min(at, before), head);
  return std::string(text.substr(0, head)).append(kGap).append(text.substr(begin, rest));
}

}  // namespace phalanx::diagnosis
