#include "cli/push/progress.h"

#include <algorithm>
#include <cstdio>

#include "base/counted.h"
#include "base/name_ranges.h"
#include "base/text.h"
#include "base/unicode.h"
#include "words/message.h"

namespace phalanx::cli {
namespace {

using words::tr;

constexpr os::milliseconds kOften{1000}, kSeldom{10'000};  // on a terminal; elsewhere
constexpr size_t kSamples = 6;                             // the rate is that of so many ticks
constexpr double kLongest_s = 100.0 * 86'400;

// Names with the same text, folded: in the order of their first.
class Groups {
 public:
  void add(const std::string& text, const std::string& name) {
    auto same = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) { return group.first == text; });
    if (same == groups_.end()) groups_.push_back({text, {name}});
    else same->second.push_back(name);
  }
  std::string joined(std::string_view between, std::string_view end) const {
    std::string out;
    for (const auto& [text, names] : groups_) {
      if (!out.empty() && end.empty()) out += ", ";
      out += base::join(base::fold_names(names), ",") + std::string(between) + text + std::string(end);
    }
    return out;
  }

 private:
  std::vector<std::pair<std::string, std::vector<std::string>>> groups_;
};

std::string rate_text(double bytes_per_s) { return base::format_bytes(static_cast<uint64_t>(bytes_per_s)) + "/s"; }

}  // namespace

std::string PushProgress::line(const std::vector<job::CopyState>& hosts, double bytes_per_s, base::Language language) {
  Groups groups;
  uint64_t sent = 0, total = 0;
  for (const job::CopyState& host : hosts) {
    sent += host.sent;
    total += host.total;
    std::string how = tr(language, "comparing");
    if (host.failed) how = tr(language, "failed");
    else if (host.over) how = tr(language, "done");
    else if (host.total > 0 && host.sent >= host.total) how = tr(language, "finishing");
    else if (host.total > 0) how = std::to_string(host.sent * 100 / host.total) + "%";
    groups.add(how, host.name);
  }
  std::string text = groups.joined(" ", "");
  if (total == 0) return text;
  text += tr(language, "; {} of {} sent", base::format_bytes(sent), base::format_bytes(total));
  if (bytes_per_s < 1 || sent >= total) return text;
  const double left_s = std::min(static_cast<double>(total - sent) / bytes_per_s, kLongest_s);
  const std::chrono::seconds left(static_cast<int64_t>(left_s + 1));
  return text + tr(language, ", {}, {} left", rate_text(bytes_per_s), base::format_duration(left));
}

void PushProgress::show(const std::string& text, os::Mono now) {
  if (quiet_ || now - last_ < (terminal_ ? kOften : kSeldom)) return;
  last_ = now;
  shown_ = terminal_;
  const std::string line = "phalanx: " + base::printable(text);
  std::fputs((terminal_ ? "\r" + line + "\x1b[K" : line + "\n").c_str(), stderr);
}

void PushProgress::clear() {
  if (shown_) std::fputs("\r\x1b[K", stderr);
  shown_ = false;
}

void PushProgress::read(uint64_t bytes) {
  read_ += bytes;
  show(tr(language_, "reading what is to be pushed: {}", base::format_bytes(read_)), os::mono_now());
}

void PushProgress::sent(const std::vector<job::CopyState>& hosts, os::Mono now) {
  uint64_t sent = 0;
  for (const job::CopyState& host : hosts) sent += host.sent;
  samples_.push_back({now, sent});
  if (samples_.size() > kSamples) samples_.pop_front();
  const double seconds = static_cast<double>((now - samples_.front().at).count()) / 1e9;
  show(line(hosts, seconds > 0 ? static_cast<double>(sent - samples_.front().sent) / seconds : 0, language_), now);
}

std::string push_table(const std::vector<job::CopiedHost>& hosts, base::Language language) {
  Groups groups;
  for (const job::CopiedHost& host : hosts) {
    if (host.error) continue;
    os::nanoseconds longest{};  // of the hosts with the same numbers
    for (const job::CopiedHost& other : hosts)
      if (!other.error && other.files == host.files && other.bytes == host.bytes && other.path == host.path)
        longest = std::max(longest, other.took);
    const double seconds = static_cast<double>(longest.count()) / 1e9;
    std::string text = host.is_source ? tr(language, "this is the directory that is pushed; nothing to do")
                       : host.files == 0
                           ? tr(language, "everything was there")
                           : tr(language, "{} files, {} sent in {} ({})", host.files, base::format_bytes(host.bytes),
                                base::format_duration(longest), rate_text(seconds > 0 ? static_cast<double>(host.bytes) / seconds : 0));
    if (host.removed > 0) text += tr(language, "; files that are gone here: {} removed", host.removed);
    if (host.stayed > 0) text += tr(language, "; files that are gone here: {} kept", host.stayed);
    groups.add(text + ": " + host.path, host.name);
  }
  return groups.joined(": ", "\n");
}

}  // namespace phalanx::cli
