// Windows of a row of tokens: bytes of a text, or the tokens of a token file. Window i holds `context` tokens, its targets are
// the tokens moved one to the left.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/files/mapped_file.h"
#include "engine/data/files/token_file.h"

namespace phalanx::engine::data {

class WindowDataset : public Dataset {
 public:
  // The tokens [first, last) of `tokens`, which lie in `file`. All windows are of equal length; what does not fill one at the end
  // is left out, and the last window needs a token behind it.
  WindowDataset(std::shared_ptr<const MappedFile> file, TokenView tokens, uint64_t first, uint64_t last, int64_t context);
  // The documents [first, last) of a token file. No window reaches over the end of its document; a document's last window may be
  // shorter. Documents of one token have no targets and give no window. Takes 8 bytes of memory per document.
  WindowDataset(std::shared_ptr<const MappedFile> file, const TokenFile& tokens, uint64_t first_document, uint64_t last_document,
                int64_t context);

  std::string name() const override { return file_->path(); }
  int64_t size() const override { return size_; }
  base::Result<Sample> get(int64_t index, ItemRandom& random) const override;
  std::string place(int64_t index) const override;
  uint64_t fingerprint() const override;

 private:
  struct Window {
    uint64_t first;   // token
    uint64_t length;  // at least 1; one more token stands behind
  };
  Window window(int64_t index) const;

  std::shared_ptr<const MappedFile> file_;
  TokenView tokens_;
  uint64_t first_ = 0, last_ = 0;  // tokens
  int64_t context_;
  int64_t size_ = 0;
  TokenFile file_of_documents_;       // with documents only
  uint64_t first_document_ = 0;       //
  std::vector<int64_t> window_ends_;  // of each document, counted over all; empty: windows over everything
};

}  // namespace phalanx::engine::data
