// RAS's report for people. Headings begin in the first column, details are indented.
#include <algorithm>

#include "base/text.h"
#include "diagnosis/hang/ras_forms.h"

namespace phalanx::diagnosis {
namespace {

// Takes words off the front of a line.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}
  bool literal(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::optional<int64_t> number() {
    size_t size = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    base::Result<int64_t> value = base::parse_int(rest_.substr(0, size), 0, int64_t{1} << 60);
    if (!value.ok()) return std::nullopt;
    rest_.remove_prefix(size);
    return *value;
  }
  std::optional<int> rank() {
    std::optional<int64_t> value = number();
    return value && *value <= kMostRasRank ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  }
  std::string_view until(std::string_view end) {
    size_t at = rest_.find(end);
    if (at == std::string_view::npos) return {};
    std::string_view text = rest_.substr(0, at);
    rest_.remove_prefix(at + end.size());
    return text;
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

class TextReader {
 public:
  RasReport read(std::string_view text) {
    for (std::string_view line : base::split_lines(text)) {
      if (line.starts_with("  "))
        detail(line.substr(line.find_first_not_of(' ') == std::string_view::npos ? line.size() : line.find_first_not_of(' ')), line);
      else heading(base::trim(line));
    }
    report_.cut = !warnings_;
    return std::move(report_);
  }

 private:
  void heading(std::string_view line) {
    Words words(line);
    in_table_ = in_table_ && !line.empty();
    if (words.literal("NCCL version ")) {
      report_.version = ras_text_kept(words.rest().substr(0, words.rest().find(' ')));
    } else if (line.starts_with("Group ")) {
      in_table_ = true;
    } else if (line == "Errors" || line == "Warnings") {
      warnings_ = line == "Warnings";
      processes_ = nullptr;
      communicator_ = nullptr;
    } else if (line == "DEAD" || line == "INCOMPLETE") {
      processes_ = line == "DEAD" ? &report_.dead : &report_.unresponsive;
      communicator_ = nullptr;
    } else if (line == "TIMEOUT") {
      processes_ = nullptr;
      communicator_ = nullptr;
    } else if (words.literal("#")) {
      begin_communicator(line);
    }
  }

  // "#0-0 (cf264af53edbe986) INCOMPLETE"
  void begin_communicator(std::string_view line) {
    size_t open = line.find(" ("), close = line.find(") ");
    if (open == std::string_view::npos || close == std::string_view::npos || close < open) return;
    std::string id = ras_text_kept(line.substr(0, open));
    processes_ = nullptr;
    camp_ = nullptr;
    what_.clear();
    for (RasCommunicator& c : report_.communicators)
      if (c.id == id) {
        communicator_ = &c;
        return;
      }
    communicator_ = nullptr;
    if (report_.communicators.size() >= kMostRasCommunicators) return;
    communicator_ = &report_.communicators.emplace_back();
    communicator_->id = id;
    communicator_->hash = ras_text_kept(line.substr(open + 2, close - open - 2));
  }

  void table_row(std::string_view line) {
    std::vector<std::string_view> cells = base::split_words(line);
    if (cells.size() < 8) return;
    base::Result<int64_t> count = base::parse_int(cells[1], 0, kMostRasRank);
    if (count.ok()) report_.communicators_told += static_cast<int>(*count);
  }

  void totals(std::string_view line) {
    std::vector<std::string_view> cells = base::split_words(line);
    std::vector<int> numbers;
    for (std::string_view cell : cells) {
      base::Result<int64_t> n = base::parse_int(cell, 0, kMostRasRank);
      if (!n.ok()) return;
      numbers.push_back(static_cast<int>(*n));
    }
    if (numbers.size() == 5) report_.nodes = numbers[0], report_.processes = numbers[3], report_.gpus = numbers[4];
    if (numbers.size() == 3) report_.nodes = numbers[0], report_.processes = numbers[1], report_.gpus = numbers[2];
  }

  void detail(std::string_view text, std::string_view whole) {
    if (in_table_) return table_row(text);
    Words words(text);
    if (words.literal("Encountered ")) {
      report_.timeouts = static_cast<int>(std::min<int64_t>(words.number().value_or(0), kMostRasRank));
    } else if (processes_ && words.literal("Process ")) {
      RasMember m;
      m.pid = words.number().value_or(0);
      if (words.literal(" on node ")) m.host = ras_text_kept(words.until(" managing GPU"));
      words.literal("s");
      m.gpu = ras_text_kept(base::trim(words.rest()));
      add(*processes_, std::move(m));
    } else if (communicator_) {
      of_communicator(text);
    } else if (!processes_ && !warnings_) {
      totals(whole);
    }
  }

  void of_communicator(std::string_view text) {
    Words words(text);
    RasCommunicator& c = *communicator_;
    if (words.literal("Missing communicator data from ")) {
      c.missing_count = words.rank().value_or(0);
      camp_ = nullptr;
      what_ = "missing";
    } else if (words.literal("The missing rank")) {  // 2.24, 2.25
      words.until(": ");
      list_of_ranks(words.rest(), c.missing);
    } else if (words.literal("Communicator ranks have different ")) {
      camp_ = nullptr;
      std::string_view operation = words.until(" operation counts");
      what_ = operation.empty() ? "status" : ras_text_kept(operation);
    } else if (words.literal("Initialization error")) {
      what_ = "init error";
      camp_ = nullptr;
    } else if (words.literal("Asynchronous error")) {
      what_ = "async error";
      camp_ = nullptr;
    } else if (words.literal("Rank ")) {
      one_rank(words, c);
    } else if (words.literal("The unknown ranks: ")) {
      return;
    } else if (std::optional<int> count = words.rank()) {
      begin_camp(words, c, *count);
    }
  }

  // " ranks have launched up to operation 6650", " ranks have status RUNNING", " ranks reported …"
  void begin_camp(Words words, RasCommunicator& c, int count) {
    if (!words.literal(" ranks ")) return;
    camp_ = said(words, c);
    if (camp_) camp_->count = count;
  }

  RasCamp* said(Words words, RasCommunicator& c) {
    RasCamp camp;
    camp.what = what_;
    words.literal("have ") || words.literal("has ");
    if (words.literal("launched up to operation ")) {
      std::optional<int64_t> n = words.number();
      if (!n) return nullptr;
      camp.operations = *n;
      camp.value = std::to_string(*n);
    } else if (words.literal("not launched any operations")) {
      camp.operations = 0;
      camp.value = "0";
    } else if (words.literal("status ") || words.literal("reported ")) {
      camp.value = ras_text_kept(words.rest().substr(0, words.rest().find(" -- ")));
    } else {
      return nullptr;
    }
    if (++camps_ > kMostRasMembers) return nullptr;
    return &c.camps.emplace_back(std::move(camp));
  }

  // "21 -- GPU 5 managed by process 3487984 on node 172.16.64.213", or with what it has done before the dashes.
  void one_rank(Words words, RasCommunicator& c) {
    RasMember m;
    std::optional<int> rank = words.rank();
    if (!rank) return;
    m.rank = *rank;
    RasCamp* camp = camp_;
    if (!words.literal(" -- ")) {
      words.literal(" ");
      camp = said(words, c);
      if (!camp) return;
      camp->count = 1;
      camp_ = nullptr;
      words.until(" -- ");
    }
    if (words.literal("GPU ")) {
      m.gpu = ras_text_kept(words.until(" managed by process "));
      m.pid = words.number().value_or(0);
      if (words.literal(" on node ")) m.host = ras_text_kept(base::trim(words.rest()));
    }
    add(camp ? camp->members : c.missing, std::move(m));
  }

  // "3", "1,2,5-7"
  void list_of_ranks(std::string_view text, std::vector<RasMember>& out) {
    for (std::string_view part : base::split(text, ',')) {
      Words words(base::trim(part));
      std::optional<int> first = words.rank(), last = first;
      if (!first) return;
      if (words.literal("-")) last = words.rank();
      for (int r = *first; last && r <= *last && r - *first < 1 << 16; ++r) {
        RasMember m;
        m.rank = r;
        if (!add(out, std::move(m))) return;
      }
    }
  }

  bool add(std::vector<RasMember>& to, RasMember m) {
    if (++members_ > kMostRasMembers) return false;
    to.push_back(std::move(m));
    return true;
  }

  RasReport report_;
  RasCommunicator* communicator_ = nullptr;
  RasCamp* camp_ = nullptr;
  std::vector<RasMember>* processes_ = nullptr;
  std::string what_;
  bool in_table_ = false, warnings_ = false;
  size_t members_ = 0, camps_ = 0;
};

}  // namespace

RasReport read_ras_text(std::string_view text) { return TextReader().read(text); }

}  // namespace phalanx::diagnosis
