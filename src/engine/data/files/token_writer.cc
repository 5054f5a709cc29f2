#include "engine/data/files/token_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/try.h"
#include "base/unicode.h"
#include "engine/data/files/mapped_file.h"

namespace phalanx::engine::data {

base::Result<TokenWriter> TokenWriter::create(const std::string& path, uint64_t vocabulary) {
  if (vocabulary == 0 || vocabulary > (uint64_t{1} << 32))
    return base::fail(base::ErrorKind::kConfig, fmt::format("a vocabulary of {} tokens does not fit into 32 bits", vocabulary));
  const std::string partial = path + ".partial";
  os::Fd fd(::open(partial.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    base::Error error = base::system_error("open", partial);
    error.kind = base::ErrorKind::kConfig;
    return error;
  }
  const TokenHeader header{.width = vocabulary <= 65536 ? 2u : 4u, .tokens = 0, .documents = 0, .vocabulary = vocabulary};
  TokenWriter writer(path, std::move(fd), header);
  writer.buffer_.assign(kTokenHeaderBytes, '\0');  // without its magic until everything behind it is on the disk
  return writer;
}

TokenWriter::~TokenWriter() {
  if (fd_.valid()) unlink(partial().c_str());
}

base::Status TokenWriter::add(std::span<const int64_t> tokens) {
  constexpr size_t kBuffer = 1 << 20;
  if (tokens.empty()) return base::ok();
  if (begins_document_) documents_.push_back(header_.tokens);
  begins_document_ = false;
  for (int64_t token : tokens) {
    if (token < 0 || static_cast<uint64_t>(token) >= header_.vocabulary)
      return base::fail(base::ErrorKind::kConfig, fmt::format("token {} of {} is outside the vocabulary", header_.tokens, path_))
          .because(fmt::format("it is {}, and the vocabulary has {}", token, header_.vocabulary));
    buffer_.append(reinterpret_cast<const char*>(&token), header_.width);
    ++header_.tokens;
    if (buffer_.size() >= kBuffer) TRY(flush());
  }
  return base::ok();
}

base::Status TokenWriter::flush() {
  TRY(os::write_all(fd_.get(), buffer_, partial()));
  buffer_.clear();
  return base::ok();
}

base::Result<TokenHeader> TokenWriter::finish() {
  header_.documents = documents_.size();
  buffer_.append(padded_token_bytes(header_) - header_.tokens * header_.width, '\0');
  buffer_.append(reinterpret_cast<const char*>(documents_.data()), documents_.size() * sizeof(uint64_t));
  TRY(flush());
  const std::string head = make_token_header(header_);
  if (fsync(fd_.get()) != 0) return base::system_error("fsync", partial());
  if (pwrite(fd_.get(), head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) return base::system_error("pwrite", partial());
  if (fsync(fd_.get()) != 0) return base::system_error("fsync", partial());
  if (rename(partial().c_str(), path_.c_str()) != 0) return base::system_error("rename", path_);
  fd_.reset();
  return header_;
}

base::Result<TokenHeader> write_byte_tokens(const std::vector<std::string>& inputs, const std::string& output) {
  TRY_ASSIGN(TokenWriter writer, TokenWriter::create(output, 256));
  for (const std::string& path : inputs) {
    TRY_ASSIGN(MappedFile file, MappedFile::open(path));
    std::array<int64_t, 4096> tokens;
    for (std::string_view rest = file.bytes(); !rest.empty();) {
      const size_t many = std::min(rest.size(), tokens.size());
      TokenView{rest.data(), 1, many}.copy(0, many, tokens.data());
      TRY(writer.add(std::span(tokens).first(many)));
      rest.remove_prefix(many);
    }
    writer.end_document();
  }
  return writer.finish();
}

}  // namespace phalanx::engine::data
