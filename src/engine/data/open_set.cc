#include "engine/data/open_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/data/files/token_file.h"
#include "engine/data/sets.h"
#include "engine/data/tokenizer.h"
#include "engine/data/windows.h"

namespace phalanx::engine::data {
namespace {

struct FormatName {
  Format format;
  std::string_view name;
};
constexpr std::array kFormats{FormatName{Format::kAuto, "auto"},     FormatName{Format::kText, "text"},
                              FormatName{Format::kLines, "lines"},   FormatName{Format::kJsonl, "jsonl"},
                              FormatName{Format::kTokens, "tokens"}, FormatName{Format::kNanogpt, "nanogpt"}};

Format format_of(const MappedFile& file, Format wanted) {
  if (wanted != Format::kAuto) return wanted;
  const std::string& path = file.path();
  if (path.ends_with(".jsonl") || path.ends_with(".ndjson")) return Format::kJsonl;
  if (path.ends_with(".tokens")) return Format::kTokens;
  if (path.ends_with(".bin")) return has_token_magic(file.bytes()) ? Format::kTokens : Format::kNanogpt;
  return Format::kText;
}

// One file in its two parts.
struct Opened {
  FileOfSet about;
  std::shared_ptr<const Dataset> training, validation;
};

// Of `count` things the first that validate.
uint64_t cut(uint64_t count, double share) { return count - static_cast<uint64_t>(static_cast<double>(count) * share); }

Opened open_lines(std::shared_ptr<const MappedFile> file, FileOfSet about, const SetOptions& options) {
  LineFormat lines = options.lines;
  lines.json = about.format == Format::kJsonl;
  auto index = std::make_shared<const std::vector<uint64_t>>(index_lines(*file));
  const size_t at = cut(index->size(), options.validation);
  about.vocabulary = ByteTokenizer::kVocabulary;
  return {about, std::make_shared<LineDataset>(file, index, 0, at, lines),
          std::make_shared<LineDataset>(file, index, at, index->size(), lines)};
}

base::Result<Opened> open_tokens(std::shared_ptr<const MappedFile> file, FileOfSet about, const SetOptions& options) {
  TokenFile tokens;
  if (about.format == Format::kText) {
    tokens.tokens = {file->bytes().data(), 1, file->bytes().size()};
    tokens.header = {.width = 1, .tokens = file->bytes().size(), .documents = 0, .vocabulary = ByteTokenizer::kVocabulary};
  } else {
    auto parsed = about.format == Format::kTokens ? parse_token_file(file->bytes()) : parse_nanogpt_file(file->bytes());
    if (!parsed.ok()) return std::move(parsed).error().within(fmt::format("opening {}", base::quote(file->path())));
    tokens = *parsed;
  }
  about.vocabulary = tokens.header.vocabulary;
  const int64_t context = options.lines.context;
  const uint64_t count = tokens.header.tokens, documents = tokens.header.documents;
  if (!options.documents_apart || about.format != Format::kTokens || documents == 0) {
    const uint64_t at = cut(count, options.validation);
    return Opened{about, std::make_shared<WindowDataset>(file, tokens.tokens, 0, at, context),
                  std::make_shared<WindowDataset>(file, tokens.tokens, at, count, context)};
  }
  const uint64_t at = cut(documents, options.validation);
  return Opened{about, std::make_shared<WindowDataset>(file, tokens, 0, at, context),
                std::make_shared<WindowDataset>(file, tokens, at, documents, context)};
}

base::Result<Opened> open_file(const std::string& path, const SetOptions& options) {
  TRY_ASSIGN(MappedFile mapped, MappedFile::open(path));
  auto file = std::make_shared<const MappedFile>(std::move(mapped));
  FileOfSet about{.path = path, .format = format_of(*file, options.format), .bytes = file->bytes().size()};
  if (file->bytes().empty()) return base::fail(base::ErrorKind::kConfig, fmt::format("the data file {} is empty", base::quote(path)));
  if (about.format == Format::kLines || about.format == Format::kJsonl) return open_lines(file, about, options);
  return open_tokens(file, about, options);
}

struct Pieces {
  std::vector<FileOfSet> files;
  std::vector<std::shared_ptr<const Dataset>> training, validation;
};

base::Result<Pieces> open_files(const std::vector<std::string>& paths, const SetOptions& options) {
  Pieces pieces;
  for (const std::string& path : paths) {
    TRY_ASSIGN(Opened opened, open_file(path, options));
    opened.about.items = opened.training->size();
    pieces.files.push_back(opened.about);
    pieces.training.push_back(opened.training);
    pieces.validation.push_back(opened.validation);
  }
  return pieces;
}

base::Status open_stream(const std::vector<std::string>& paths, const SetOptions& options, OpenedSet& set) {
  if (options.validation > 0 && options.validation_files.empty())
    return base::fail(base::ErrorKind::kConfig, "the end of a stream cannot be held out for validation")
        .because("data.streaming is on, and data.validation is above 0")
        .with_hint("set data.validation=0, or name files in data.validation_files");
  std::vector<std::shared_ptr<const MappedFile>> files;
  for (const std::string& path : paths) {
    TRY_ASSIGN(MappedFile mapped, MappedFile::open(path));
    const Format format = format_of(mapped, options.format);
    if (format != Format::kJsonl && format != Format::kLines)
      return base::fail(base::ErrorKind::kConfig, fmt::format("{} cannot be streamed", base::quote(path)))
          .because(fmt::format("its format {} is read in place at any size", to_text(format)))
          .with_hint("set data.streaming=off, or data.format=lines");
    if (!set.files.empty() && format != set.files[0].format)
      return base::fail(base::ErrorKind::kConfig, "the files of a stream have different formats")
          .because(fmt::format("{} is {}, {} is {}", set.files[0].path, to_text(set.files[0].format), path, to_text(format)))
          .with_hint("set data.format");
    set.files.push_back({path, format, mapped.bytes().size(), -1, ByteTokenizer::kVocabulary});
    files.push_back(std::make_shared<const MappedFile>(std::move(mapped)));
  }
  LineFormat lines = options.lines;
  lines.json = set.files[0].format == Format::kJsonl;
  set.stream = std::make_shared<LineStream>(std::move(files), lines, options.shuffle_buffer);
  return base::ok();
}

}  // namespace

std::string_view to_text(Format format) {
  for (const FormatName& row : kFormats)
    if (row.format == format) return row.name;
  return "?";
}

base::Result<Format> parse_format(std::string_view text) {
  for (const FormatName& row : kFormats)
    if (row.name == text) return row.format;
  return base::fail(base::ErrorKind::kConfig, fmt::format("unknown data format {}", base::quote(text)));
}

base::Result<OpenedSet> open_set(const SetOptions& options) {
  TRY_ASSIGN(std::vector<std::string> paths, find_files(options.files));
  return open_paths(paths, options);
}

base::Result<OpenedSet> open_paths(const std::vector<std::string>& paths, const SetOptions& options) {
  if (options.lines.context <= 0)
    return base::fail(base::ErrorKind::kConfig, fmt::format("the context of {} tokens is too small", options.lines.context));
  if (options.validation < 0 || options.validation >= 1)
    return base::fail(base::ErrorKind::kConfig, fmt::format("{} of a dataset cannot be held out for validation", options.validation))
        .because("it must be a fraction from 0 to below 1");
  OpenedSet set;
  SetOptions training = options;
  if (!options.validation_files.empty()) training.validation = 0;
  std::vector<std::shared_ptr<const Dataset>> validation;
  if (options.streaming) {
    TRY(open_stream(paths, training, set));
  } else {
    TRY_ASSIGN(Pieces pieces, open_files(paths, training));
    set.files = std::move(pieces.files);
    set.training = std::make_shared<ConcatDataset>(std::move(pieces.training));
    if (training.validation > 0) validation = std::move(pieces.validation);
  }
  if (!options.validation_files.empty()) {
    SetOptions whole = options;
    whole.validation = 0;
    TRY_ASSIGN(std::vector<std::string> held_out, find_files(options.validation_files));
    TRY_ASSIGN(Pieces pieces, open_files(held_out, whole));
    validation = std::move(pieces.training);
  }
  if (!validation.empty()) set.validation = std::make_shared<ConcatDataset>(std::move(validation));
  for (const FileOfSet& file : set.files) set.vocabulary = std::max(set.vocabulary, file.vocabulary);
  for (const FileOfSet& file : set.files)
    if (file.vocabulary == 0) set.vocabulary = 0;
  return set;
}

}  // namespace phalanx::engine::data
