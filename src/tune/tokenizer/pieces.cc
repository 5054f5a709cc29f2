#include "tune/tokenizer/pieces.h"

#include "base/text.h"
#include "base/unicode.h"

namespace phalanx::tune {
namespace {

using Pieces = std::vector<std::string>;

// The bytes of neighbours, which become text only together.
class Bytes {
 public:
  explicit Bytes(Pieces* out) : out_(out) {}
  void add(int byte) { bytes_.push_back(static_cast<char>(byte)); }
  void end() {
    if (bytes_.empty()) return;
    if (base::is_utf8(bytes_)) out_->push_back(bytes_);
    else
      for (size_t i = 0; i < bytes_.size(); ++i) out_->emplace_back("\xEF\xBF\xBD");
    bytes_.clear();
  }

 private:
  Pieces* out_;
  std::string bytes_;
};

Pieces without_fallback(const Pieces& pieces) {
  Pieces out;
  Bytes bytes(&out);
  for (const std::string& piece : pieces) {
    if (const int byte = byte_of_piece(piece); byte >= 0) {
      bytes.add(byte);
      continue;
    }
    bytes.end();
    out.push_back(piece);
  }
  bytes.end();
  return out;
}

std::string stripped(std::string_view piece, const DecoderStep& how) {
  for (int64_t i = 0; i < how.start && piece.starts_with(how.text); ++i) piece.remove_prefix(how.text.size());
  for (int64_t i = 0; i < how.stop && piece.ends_with(how.text); ++i) piece.remove_suffix(how.text.size());
  return std::string(piece);
}

void apply(const DecoderStep& step, Pieces* pieces) {
  using enum DecoderStep::Kind;
  switch (step.kind) {
    case kReplace:
      for (std::string& piece : *pieces) piece = base::replace_all(piece, step.text, step.by);
      break;
    case kByteFallback: *pieces = without_fallback(*pieces); break;
    case kFuse: *pieces = {base::join(*pieces, "")}; break;
    case kStrip:
      for (std::string& piece : *pieces) piece = stripped(piece, step);
      break;
    case kMetaspace:
      for (size_t i = 0; i < pieces->size(); ++i)
        (*pieces)[i] = base::replace_all((*pieces)[i], step.text, i == 0 && step.start > 0 ? "" : " ");
      break;
  }
}

}  // namespace

std::string normalize(std::string_view text, const NormalizerSteps& steps) {
  std::string out(text);
  for (const NormalizerStep& step : steps) {
    if (out.empty()) break;
    switch (step.kind) {
      case NormalizerStep::Kind::kForm: out = normalize(out, step.form); break;
      case NormalizerStep::Kind::kPrepend: out.insert(0, step.text); break;
      case NormalizerStep::Kind::kReplace: out = base::replace_all(out, step.text, step.by); break;
    }
  }
  return out;
}

std::string with_marks(std::string_view text, const Metaspace& how, bool at_start) {
  if (text.empty()) return "";
  std::string out = base::replace_all(text, " ", how.mark);
  const bool asked = how.prepend == Metaspace::Prepend::kAlways || (how.prepend == Metaspace::Prepend::kFirst && at_start);
  if (asked && !out.starts_with(how.mark)) out.insert(0, how.mark);
  return out;
}

std::string decode_pieces(Pieces pieces, const std::vector<DecoderStep>& steps) {
  for (const DecoderStep& step : steps) apply(step, &pieces);
  return base::join(pieces, "");
}

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return -1;
  int out = 0;
  for (char c : piece.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return -1;
    out = out * 16 + digit;
  }
  return out;
}

}  // namespace phalanx::tune
