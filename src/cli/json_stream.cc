#include "cli/json_stream.h"

#include "os/clock.h"

namespace phalanx::cli {

std::string json_line(int64_t wall_ns, const std::string& name, const base::Json& fields) {
  base::Json json = {{"v", 1}, {"t", os::iso_time(wall_ns)}, {"event", name}};
  json.update(fields);
  return base::to_text(json) + "\n";
}

void JsonStream::print(int64_t wall_ns, const std::string& name, const base::Json& fields) {
  const bool full = dropped_ > 0 ? output_.pending() > output_.bound() / 2 : !output_.wants_more();
  if (live_ && full) {
    ++dropped_;
    return;
  }
  say_dropped();
  output_.buffer() += json_line(wall_ns, name, fields);
  output_.pump();
}

void JsonStream::print_last(const std::string& text) {
  say_dropped();
  output_.buffer() += text;
}

void JsonStream::say_dropped() {
  if (dropped_ == 0 || output_.closed()) return;
  output_.buffer() += json_line(os::wall_now_ns(), "dropped", {{"objects", dropped_}});
  dropped_ = 0;
  output_.pump();
}

}  // namespace phalanx::cli
