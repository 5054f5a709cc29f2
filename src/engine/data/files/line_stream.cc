// LineStream: lines in the order of the files, mixed in a bounded buffer of tickets (not of texts: the pages of lines read a
// moment ago are still in the page cache when a ticket is loaded).
#include "engine/data/files/line_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.h"
#include "engine/comm/fingerprint.h"
#include "engine/require.h"

namespace phalanx::engine::data {
namespace {

base::Error not_of_this(std::string why) {
  return base::fail(base::ErrorKind::kConfig, "the saved position does not belong to this stream").because(std::move(why));
}

base::Json to_json(const Ticket& ticket) { return base::Json::array({ticket.number, ticket.file, ticket.offset}); }

}  // namespace

LineStream::LineStream(std::vector<std::shared_ptr<const MappedFile>> files, LineFormat format, int64_t buffer)
    : files_(std::move(files)), format_(std::move(format)), buffer_size_(std::max<int64_t>(1, buffer)) {
  require(!files_.empty(), "a LineStream needs at least one file");
  require(buffer <= kMaxBuffer, "a shuffle buffer of {} lines exceeds the limit of {}", buffer, kMaxBuffer);
  require(format_.context > 0, "the context of {} tokens is too small", format_.context);
}

std::string LineStream::name() const {
  return files_.size() == 1 ? files_[0]->path() : fmt::format("{} and {} more", files_[0]->path(), files_.size() - 1);
}

uint64_t LineStream::fingerprint() const {
  comm::Fingerprint print;
  for (const auto& file : files_) print.add(static_cast<int64_t>(file->fingerprint()));
  print.add(format_.context);
  return print.value();
}

void LineStream::start(uint64_t seed, int64_t epoch) {
  file_ = offset_ = 0;
  number_ = 0;
  buffer_.clear();
  random_ = ItemRandom(seed, epoch, -1);
}

base::Result<std::optional<Ticket>> LineStream::read_next() {
  for (; file_ < files_.size(); ++file_, offset_ = 0) {
    TRY(files_[file_]->intact());
    LineCursor cursor(files_[file_]->bytes(), offset_);
    const std::optional<uint64_t> begin = cursor.next();
    if (!begin) continue;
    offset_ = cursor.offset();
    return std::optional(Ticket{number_++, file_, *begin});
  }
  return std::optional<Ticket>();
}

base::Result<std::optional<Ticket>> LineStream::next() {
  while (static_cast<int64_t>(buffer_.size()) < buffer_size_) {
    TRY_ASSIGN(std::optional<Ticket> ticket, read_next());
    if (!ticket) break;
    buffer_.push_back(*ticket);
  }
  if (buffer_.empty()) return std::optional<Ticket>();
  std::swap(buffer_[random_.below(buffer_.size())], buffer_.back());
  const Ticket drawn = buffer_.back();
  buffer_.pop_back();
  return std::optional(drawn);
}

base::Result<Sample> LineStream::load(const Ticket& ticket, ItemRandom&) const {
  return read_line(*files_[ticket.file], ticket.offset, format_);
}

std::string LineStream::place(const Ticket& ticket) const {
  const MappedFile& file = *files_[ticket.file];
  return fmt::format("{}:{}", file.path(), file.line_of(ticket.offset));
}

std::function<base::Json()> LineStream::mark() const {
  return [file = file_, offset = offset_, number = number_, random = random_.state(), buffer = buffer_, size = buffer_size_] {
    base::Json tickets = base::Json::array();
    for (const Ticket& ticket : buffer) tickets.push_back(to_json(ticket));
    return base::Json{{"file", file}, {"offset", offset}, {"number", number}, {"random", random}, {"size", size}, {"buffer", tickets}};
  };
}

base::Status LineStream::seek(const base::Json& mark) {
  auto whole = [&](const base::Json& json, uint64_t max) -> base::Result<uint64_t> {
    if (!json.is_number_integer() || (!json.is_number_unsigned() && json.get<int64_t>() < 0) || json.get<uint64_t>() > max)
      return not_of_this(fmt::format("{} is not a number from 0 to {}", base::to_text(json), max));
    return json.get<uint64_t>();
  };
  for (const char* key : {"file", "offset", "number", "random", "size", "buffer"})
    if (!mark.is_object() || !mark.contains(key)) return not_of_this(fmt::format("it has no {}", key));
  TRY_ASSIGN(uint64_t size, whole(mark["size"], kMaxBuffer));
  if (static_cast<int64_t>(size) != buffer_size_)
    return not_of_this(fmt::format("it was saved with a shuffle buffer of {} items, but this stream has {}", size, buffer_size_));
  TRY_ASSIGN(uint64_t file, whole(mark["file"], files_.size()));
  TRY_ASSIGN(uint64_t offset, whole(mark["offset"], file < files_.size() ? files_[file]->bytes().size() : 0));
  TRY_ASSIGN(uint64_t number, whole(mark["number"], INT64_MAX));
  TRY_ASSIGN(uint64_t random, whole(mark["random"], UINT64_MAX));
  std::vector<Ticket> buffer;
  if (!mark["buffer"].is_array() || mark["buffer"].size() > size) return not_of_this("its buffer is not a list, or is too long");
  for (const base::Json& entry : mark["buffer"]) {
    if (!entry.is_array() || entry.size() != 3) return not_of_this("an entry of its buffer is not three numbers");
    TRY_ASSIGN(uint64_t item, whole(entry[0], number));
    TRY_ASSIGN(uint64_t in_file, whole(entry[1], files_.size() - 1));
    TRY_ASSIGN(uint64_t at, whole(entry[2], files_[in_file]->bytes().size()));
    buffer.push_back({static_cast<int64_t>(item), in_file, at});
  }
  file_ = file;
  offset_ = offset;
  number_ = static_cast<int64_t>(number);
  random_ = ItemRandom::at_state(random);
  buffer_ = std::move(buffer);
  return base::ok();
}

}  // namespace phalanx::engine::data
