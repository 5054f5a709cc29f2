// Files named by a person to the sets a training reads: finds them, knows their format, splits off what validates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/data/dataset.h"
#include "engine/data/files/line_files.h"

namespace phalanx::engine::data {

enum class Format {
  kAuto,    // by the name: .jsonl, .ndjson; .tokens; .bin (a token file, or nanoGPT's); anything else is text
  kText,    // bytes, in windows
  kLines,   // a line is an item
  kJsonl,   //
  kTokens,  // docs/formats/token-file.md
  kNanogpt  // u16 tokens without a header
};

struct SetOptions {
  // Files, folders (their files, without hidden ones and without subfolders) and globs, separated by commas; in the order given, those
  // of one folder or glob by name. A file named twice counts once.
  std::string files = {};
  std::string validation_files = {};  // the same; empty: the end of each training file
  double validation = 0;              // how much of it; not used with validation_files
  Format format = Format::kAuto;
  LineFormat lines = {};         // .context is also the length of windows; .json is set by the format
  bool documents_apart = false;  // of token files: no window reaches over the end of a document
  bool streaming = false;        // lines and jsonl: nothing is indexed, and mixing happens in a buffer
  int64_t shuffle_buffer = 0;    // of a stream; 0: not mixed
};

struct FileOfSet {
  std::string path;
  Format format = Format::kText;  // never kAuto
  uint64_t bytes = 0;
  int64_t items = -1;       // for training; -1: not counted (streaming)
  uint64_t vocabulary = 0;  // 0: not known
};

struct OpenedSet {
  std::vector<FileOfSet> files;             // of training
  std::shared_ptr<const Dataset> training;  // one of training and stream is there
  std::shared_ptr<Stream> stream;
  std::shared_ptr<const Dataset> validation;  // may be missing, or hold no items
  uint64_t vocabulary = 0;                    // every token is below it: the largest of the files; 0: not known
  uint64_t fingerprint() const { return training ? training->fingerprint() : stream->fingerprint(); }
};

inline constexpr size_t kMaxFiles = 10'000;

// The files of a list, sorted as SetOptions::files says. Error (kConfig): a word that names nothing, no file, more than kMaxFiles.
base::Result<std::vector<std::string>> find_files(const std::string& list);

// Error (kConfig): what cannot be found, opened or understood; formats that cannot be streamed; a validation share of a stream.
base::Result<OpenedSet> open_set(const SetOptions& options);
// The same for files already found, as the training files; options.files is not looked at.
base::Result<OpenedSet> open_paths(const std::vector<std::string>& paths, const SetOptions& options);

std::string_view to_text(Format format);
base::Result<Format> parse_format(std::string_view text);  // "auto", "text", "lines", "jsonl", "tokens", "nanogpt"

}  // namespace phalanx::engine::data
