// What the user of `phalanx run` sees: the lines of all ranks, our own talk, and one bar for the run.
//
//   stdout            lines of ranks' stdout
//   stderr            lines of ranks' stderr, our talk, the bar
//
// On a terminal a line is "[gpu02:5] text" with the prefix coloured by host and "[gpu02:5!]" for stderr; equal lines of many
// ranks are folded ("[×15 ranks 1–15] text"); the bar stands at the bottom, is taken away before lines are printed and drawn
// again after them, at most kRedraw often. Off a terminal: plain prefixed lines, no folding, no colours, and instead of the
// bar one line of talk every kProgressLine. Either way something is said at least every kSilence.
//
// Nothing here blocks: see view/terminal/output.h. Of a live run (ViewOptions::live) lines are dropped when wants_more() is false, counted,
// and told when the reader reads again: a reader that stops never holds up the run. Else stop calling line() until on_room calls.
// Everything runs on the loop's thread. Lines of ranks, bars and progress come after set_ranks().
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "logs/line_folding.h"
#include "os/loop.h"
#include "view/speech.h"
#include "view/terminal/capabilities.h"
#include "view/terminal/line_prefix.h"
#include "view/terminal/output.h"
#include "view/terminal/run_bar.h"

namespace phalanx::view {

struct ViewOptions {
  bool quiet = false;  // no talk, no bar
  bool prefix = true;
  bool live = false;                                // what is shown goes on whether we show it or not
  Choice fold = Choice::kAuto;                      // kAuto: on a terminal
  bool bar = true;                                  // where stderr is a terminal that can
  std::chrono::milliseconds progress_line{30'000};  // off a terminal
  std::chrono::milliseconds silence{50'000};        // with nothing at all to see
  std::chrono::milliseconds first_silence{0};       // the same from the start of the run on, said once; 0: what was before is not known
};

class View : private logs::Folder::Sink {
 public:
  static constexpr std::chrono::milliseconds kRedraw{60};
  static constexpr std::chrono::milliseconds kBeat{200};

  // The loop must outlive the view.
  View(os::Loop& loop, const TerminalCapabilities& surroundings, const Speech& speech, ViewOptions options);
  ~View() override;
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  // The name of the host of every rank; starts what is said about a run.
  void set_ranks(const std::vector<std::string>& host_of_rank);
  // Whole lines of a rank.
  void line(int rank, wire::Stream stream, std::string_view lines);
  // The state of a bar of a rank, as LineSplitter gives it.
  void bar(int rank, std::string_view state);
  void progress(int rank, const wire::RankProgress& progress);
  // The same of figures that a line of the rank has shown: they fill the bar, and are not said again where there is none.
  void shown_progress(int rank, const wire::RankProgress& progress);
  // Our own talk: whole sentences, "\n" at the end optional. Not with quiet.
  void say(std::string_view text);
  // An error or a verdict; also with quiet.
  void say_error(std::string_view text);

  // Not for a live run.
  bool wants_more() const { return out_->wants_more() && err_->wants_more(); }
  // Called from the loop when wants_more() had been false.
  void on_room(std::function<void()> callback);
  // The run is over: takes the bar away, gives everything held, and waits at most so long for our readers. Only say() and say_error()
  // and another finish() may follow.
  // False: they have not taken everything.
  bool finish(std::chrono::milliseconds most);

 private:
  // Text of our own beyond the bound: less than this of it is kept for a reader that has stopped.
  static constexpr size_t kTalkBytes = 256 << 10;
  void pass(int rank, wire::Stream stream, std::string_view lines) override;
  void folded(wire::Stream stream, std::string_view line, std::span<const int> ranks, size_t times) override;
  bool is_rank(int rank) const { return rank >= 0 && static_cast<size_t>(rank) < prefixes_[0].size(); }
  Output& output_for(wire::Stream stream) { return stream == wire::Stream::kStderr ? *err_ : *out_; }
  void dress(wire::Stream stream, std::string_view prefix, std::string_view lines);
  std::string rank_prefix(const std::string& host, int rank, size_t host_number, wire::Stream stream) const;
  void talk(std::string_view text);
  bool drops(const Output& output, uint64_t& dropped);
  void say_dropped(const Output& output, uint64_t& dropped);
  void before_text(Output& output);
  void schedule();
  void flush();
  void draw_bar();
  std::string bar_text() const;
  void arm_fold_timer();
  void beat();
  void hear();  // something of a rank
  void say_progress(os::Mono now);
  void tell_failure(const Output& output, std::string_view name, bool& told);

  os::Loop& loop_;
  TerminalCapabilities around_;
  Speech speech_;
  ViewOptions options_;
  std::unique_ptr<Output> out_owner_, err_owner_;
  Output* out_;
  Output* err_;      // may be out_
  bool bar_wanted_;  // there is a terminal to draw it on
  bool fold_;
  std::vector<std::string> prefixes_[2];
  std::optional<logs::Folder> folder_;
  RunBar run_bar_;
  std::string drawn_;  // the bar as it stands on the terminal; "" when it does not
  bool bar_dirty_ = false;
  bool progress_unsaid_ = false;
  bool out_told_ = false, err_told_ = false;
  uint64_t out_dropped_ = 0, err_dropped_ = 0;  // lines, not yet told
  os::Mono drawn_at_, flushed_at_, progress_said_at_;
  os::Mono shown_at_;   // when any text was last written
  os::Mono heard_at_;   // when a rank last said anything; before that, when they started
  bool heard_ = false;  // anything of any rank, or that there is nothing yet was said
  os::TimerId flush_timer_ = 0, fold_timer_ = 0, beat_timer_ = 0;
};

}  // namespace phalanx::view
