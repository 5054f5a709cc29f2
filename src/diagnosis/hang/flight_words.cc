#include "diagnosis/hang/flight_words.h"

#include <fmt/format.h>

#include "base/text.h"
#include "diagnosis/hang/rank_words.h"

namespace phalanx::diagnosis {
namespace {

using Kind = FlightVerdict::Kind;

std::string list(const std::vector<int>& ranks) { return base::format_ranges(ranks); }

}  // namespace

std::string operation_of(const TraceEntry& entry) {
  constexpr size_t kMostSaid = 4;
  if (entry.parts.empty()) return fmt::format("{} {}", entry.name, entry.sequence);
  std::string text;
  for (size_t i = 0; i < entry.parts.size() && i < kMostSaid; ++i) {
    const TracePart& part = entry.parts[i];
    text += fmt::format("{}{} rank {}", i ? " + " : "", part.send ? "send →" : "recv ←", part.peer < 0 ? "?" : std::to_string(part.peer));
  }
  return entry.parts.size() > kMostSaid ? fmt::format("{} + … ({})", text, entry.parts.size()) : text;
}

void say_not_joined(FlightVerdict& v, std::string_view operation, const TraceEntry* last) {
  v.kind = Kind::kNotJoined;
  v.code = "HANG-NEVER-ENTERED";
  std::string text = "it recorded no operation", text_zh = "它没有任何记录";
  if (last) {
    v.where = last->where;
    std::string at = v.where.empty() ? "" : ", " + v.where;
    text = fmt::format("the last operation of rank {} was {}{}", v.culprits[0], operation_of(*last), at);
    text_zh = fmt::format("rank {} 的最后一次操作是 {}{}", v.culprits[0], operation_of(*last), at);
  }
  v.evidence = {
      fmt::format("{} never entered {} of {}, in which {}; {}", name_ranks(v.culprits), operation, v.group,
                  name_ranks(v.waiting, "waits", "wait"), text),
      fmt::format("rank {} 没有进入 {} 的 {}，rank {} 正在其中等待；{}", list(v.culprits), v.group, operation, list(v.waiting), text_zh)};
}

void say_mismatch(FlightVerdict& v, std::string_view camps) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  std::string at = v.where.empty() ? "" : fmt::format(" ({})", v.where);
  v.evidence = {fmt::format("collective {} of {} differs between the ranks: {}{}", v.sequence, v.group, camps, at),
                fmt::format("{} 的第 {} 次集合通信在各 rank 上不一致：{}{}", v.group, v.sequence, camps, at)};
}

void say_parts_differ(FlightVerdict& v, std::string_view sides) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = {fmt::format("a send and its receive in {} differ in size or type: {}", v.group, sides),
                fmt::format("{} 中一对 send 与 recv 的大小或类型不一致：{}", v.group, sides)};
}

void say_sums_differ(FlightVerdict& v, std::string_view operation, int64_t in, int64_t out) {
  v.kind = Kind::kMismatch;
  v.code = "HANG-MISMATCH";
  v.evidence = {
      fmt::format("{} of {} sends {} elements and receives {}: the split sizes of the ranks do not match", operation, v.group, in, out),
      fmt::format("{} 的 {} 共发送 {} 个元素、接收 {} 个：各 rank 的 split sizes 不匹配", v.group, operation, in, out)};
}

void say_undecided(FlightVerdict& v, std::string_view operation) {
  v.kind = Kind::kUndecided;
  v.evidence = {fmt::format("{} in {} of {}; {} no dump: exited, or stuck where no dump can be written",
                            name_ranks(v.waiting, "waits", "wait"), operation, v.group, name_ranks(v.without_dump, "has", "have")),
                fmt::format("rank {} 在 {} 的 {} 中等待；缺少 rank {} 的转储，它已退出，或卡在无法写出转储的地方", list(v.waiting), v.group,
                            operation, list(v.without_dump))};
}

void say_together(FlightVerdict& v, std::string_view operation, const std::vector<int>& scheduled) {
  v.kind = Kind::kTogether;
  v.code = "HANG-TRANSPORT";
  bool blocked = !scheduled.empty() && scheduled.size() < v.waiting.size();
  std::string why = blocked ? fmt::format("earlier work blocks the stream of {}", name_ranks(scheduled)) : "the network or a GPU";
  std::string why_zh = blocked ? fmt::format("rank {} 的 stream 被更早的工作阻塞", list(scheduled)) : "问题在网络或 GPU";
  v.evidence = {fmt::format("all ranks entered {} of {}, but it has not completed: {}", operation, v.group, why),
                fmt::format("所有 rank 都进入了 {} 的 {}，但没有完成：{}", v.group, operation, why_zh)};
}

void say_circle(FlightVerdict& v, const std::vector<CircleStep>& steps) {
  constexpr size_t kMostSaid = 8;
  v.kind = Kind::kCircular;
  v.code = "HANG-CIRCULAR";
  for (size_t i = 0; i < steps.size() && i < kMostSaid; ++i) {
    const CircleStep& s = steps[i];
    v.evidence.english += fmt::format("{}rank {} waits in {} of {} for rank {}", i ? ", " : "", s.rank, s.operation, s.group, s.next);
    v.evidence.chinese += fmt::format("{}rank {} 在 {} 的 {} 中等待 rank {}", i ? "，" : "", s.rank, s.group, s.operation, s.next);
  }
  if (steps.size() > kMostSaid) {
    v.evidence.english += fmt::format(", and so on over {} ranks", steps.size());
    v.evidence.chinese += fmt::format("，如此共 {} 个 rank", steps.size());
  }
}

void note_missing(FlightVerdict& v) {
  v.notes.push_back({fmt::format("no dump of {}: exited, or unable to write one", name_ranks(v.without_dump)),
                     fmt::format("缺少 rank {} 的转储：它已退出，或无法写出", list(v.without_dump))});
}

void note_overwritten(FlightVerdict& v, const std::vector<int>& ranks) {
  v.notes.push_back({fmt::format("the ring buffer of {} has overwritten its oldest entries; earlier operations are assumed to be "
                                 "completed. To enlarge the buffer, set TORCH_FR_BUFFER_SIZE (TORCH_NCCL_TRACE_BUFFER_SIZE)",
                                 name_ranks(ranks)),
                     fmt::format("rank {} 的环形缓冲已覆盖最早的记录，更早的操作视为已完成；可用 TORCH_FR_BUFFER_SIZE"
                                 "（TORCH_NCCL_TRACE_BUFFER_SIZE）加大",
                                 list(ranks))});
}

void note_cut(FlightVerdict& v, const std::vector<int>& ranks) {
  v.notes.push_back({fmt::format("the dump of {} has too many entries; only a part was read", name_ranks(ranks)),
                     fmt::format("rank {} 的转储条目过多，没有全部读取", list(ranks))});
}

}  // namespace phalanx::diagnosis
