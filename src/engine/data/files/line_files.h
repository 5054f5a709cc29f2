// Records of text, one a line, as a Dataset (an index of the lines is made once) and as a Stream (nothing is indexed).
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/files/mapped_file.h"
#include "engine/data/files/records.h"

namespace phalanx::engine::data {

// How a line becomes an item. A token is a byte.
struct LineFormat {
  bool json = true;     // false: the line itself is the text
  RecordFields fields;  // of json
  int64_t context = 0;  // longest item in tokens; what is longer is cut at its end
};

// tokens: prompt and text without the last token; targets: the same moved one to the left, kNoTarget where the target would
// belong to the prompt. A record of fewer than two tokens gives an item of length 0.
// Error (kConfig) with "<file>:<line>" in its message.
base::Result<Sample> read_line(const MappedFile& file, uint64_t offset, const LineFormat& format);

class LineDataset : public Dataset {
 public:
  // The lines [first, last) of an index made by index_lines.
  LineDataset(std::shared_ptr<const MappedFile> file, std::shared_ptr<const std::vector<uint64_t>> index, size_t first, size_t last,
              LineFormat format);

  std::string name() const override { return file_->path(); }
  int64_t size() const override { return static_cast<int64_t>(last_ - first_); }
  base::Result<Sample> get(int64_t index, ItemRandom& random) const override;
  std::string place(int64_t index) const override;
  uint64_t fingerprint() const override;

 private:
  uint64_t offset(int64_t index) const { return (*index_)[first_ + static_cast<size_t>(index)]; }
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const std::vector<uint64_t>> index_;
  size_t first_, last_;
  LineFormat format_;
};

// Where each line that is not blank begins. One pass over the file; 8 bytes of memory per line.
std::vector<uint64_t> index_lines(const MappedFile& file);

// The lines of all files in their order, mixed in a buffer: each ticket handed out is drawn from `buffer` tickets, and the next
// line takes its place. 0 or 1: the order of the files.
class LineStream : public Stream {
 public:
  static constexpr int64_t kMaxBuffer = 65'536;
  LineStream(std::vector<std::shared_ptr<const MappedFile>> files, LineFormat format, int64_t buffer);

  std::string name() const override;
  uint64_t fingerprint() const override;
  void start(uint64_t seed, int64_t epoch) override;
  base::Result<std::optional<Ticket>> next() override;
  base::Result<Sample> load(const Ticket& ticket, ItemRandom& random) const override;
  std::string place(const Ticket& ticket) const override;
  std::function<base::Json()> mark() const override;
  base::Status seek(const base::Json& mark) override;

 private:
  base::Result<std::optional<Ticket>> read_next();  // in the order of the files
  std::vector<std::shared_ptr<const MappedFile>> files_;
  LineFormat format_;
  int64_t buffer_size_;
  // Where it stands; all of it is in the mark.
  uint64_t file_ = 0, offset_ = 0;
  int64_t number_ = 0;
  ItemRandom random_{0, 0, 0};
  std::vector<Ticket> buffer_;
};

}  // namespace phalanx::engine::data
