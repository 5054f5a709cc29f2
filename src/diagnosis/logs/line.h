// A line of a log without the tags that launchers, schedulers and loggers put in front of it, and what the tags tell. Pure.
//
// Known: torchrun "[default3]:", torch "[rank3]:", Open MPI "[1,3]<stderr>:", srun --label "3: ", pdsh and DeepSpeed "gpu01: ", Docker
// Compose "worker-1  | ", Kubernetes "…Z stdout F ", syslog and journal "Nov 20 08:47:12 gpu01 kernel: ", dmesg "[12.345678] " and its -T,
// ISO and Python timestamps with or without brackets, Ray "(RayTrainWorker pid=4021) ", labels such as "[task 5] " and "[stderr] ",
// and of NCCL's own "gpu01:123:456 [0] " the host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace phalanx::diagnosis {

struct LogLine {
  std::string_view text;  // what the program wrote; its own indentation kept
  int rank = -1;          // -1: not told
  int local_rank = -1;
  std::string_view host;        // empty: not told
  std::string_view label;       // of a launcher or collector that names neither: "task 5", "RayTrainWorker pid=4021"; empty: none
  std::optional<int64_t> time;  // milliseconds since the year began, as written: many loggers leave out the year, all the time zone

  // Lines of one writer have equal sources: "r3", "l3@gpu01", "".
  std::string source() const;
};

// `line` has no line end and no escape sequences.
LogLine read_log_line(std::string_view line);
// Whether it tells anything that no text of a program does: a tag in front, a host, a time.
bool has_tags(std::string_view line);

// A time anywhere near the start of the text ("[E1120 08:47:12.345 ProcessGroupNCCL.cpp:616]", "[2024-11-20 08:47:12,345]"), within 80
// bytes.
std::optional<int64_t> find_time(std::string_view text);

// What is kept of a line: all of it, or of one longer than `most` bytes its beginning, and where `words` stand behind that, these with what
// is around them.
std::string excerpt(std::string_view text, std::string_view words, size_t most);

inline constexpr int kMostRanks = 1 << 20;
std::optional<int> to_rank(std::string_view digits);

// The rank that an event of this line is about. captured: what the message says, perhaps nothing. In "[rank19]:[E…] [PG ID 5 … Rank 1]" the
// message gives the writer's number in a process group, and the tag the number in the job.
int rank_of_event(const LogLine& line, std::string_view captured, int rank_of_file);

// The rank a file's name tells: "ranks/3.log", "rank_3.log", "log-rank3.txt", torchrun's "attempt_0/3/stderr.log" (a local rank).
struct NamedRank {
  int rank = -1, local_rank = -1;
};
NamedRank rank_of_file(std::string_view path);

}  // namespace phalanx::diagnosis
