// SPDX-License-Identifier: Apache-2.0
#include "array/member_stream.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

constexpr std::uint64_t chunk_bytes = std::uint64_t{1} << 20;

}  // namespace

MemberStream::MemberStream(const File& file, const Extent& extent) : file_(file), extent_(extent) {
  if (!extent_.deflated) return;
  stream_ = std::make_unique<z_stream_s>();
  constexpr int no_header = -MAX_WBITS;  // zip keeps zlib's own header away
  if (inflateInit2(stream_.get(), no_header) != Z_OK)
    fail(ErrorCode::out_of_memory, "zlib cannot start to inflate");
  compressed_.resize(std::min(chunk_bytes, extent_.bytes));
}

MemberStream::~MemberStream() {
  if (stream_) inflateEnd(stream_.get());
}

void MemberStream::read(void* to, std::uint64_t bytes) {
  if (bytes > extent_.inflated_bytes - position_)
    fail(ErrorCode::format, fmt::format("{}: {} bytes at {} of an array's {} bytes: it is not whole",
                                        file_.path(), bytes, position_, extent_.inflated_bytes));
  if (extent_.deflated)
    inflate_some(static_cast<unsigned char*>(to), bytes);
  else
    file_.read(extent_.offset + position_, to, bytes);
  position_ += bytes;
}

void MemberStream::skip(std::uint64_t bytes) {
  if (!extent_.deflated) {
    position_ += std::min(bytes, extent_.inflated_bytes - position_);
    return;
  }
  std::vector<unsigned char> unused(std::min(chunk_bytes, bytes));
  while (bytes > 0) {
    const std::uint64_t some = std::min<std::uint64_t>(bytes, unused.size());
    read(unused.data(), some);
    bytes -= some;
  }
}

void MemberStream::inflate_some(unsigned char* to, std::uint64_t bytes) {
  while (bytes > 0) {
    if (stream_->avail_in == 0 && fetched_ < extent_.bytes) {
      const std::uint64_t some = std::min<std::uint64_t>(compressed_.size(), extent_.bytes - fetched_);
      file_.read(extent_.offset + fetched_, compressed_.data(), some);
      fetched_ += some;
      stream_->next_in = compressed_.data();
      stream_->avail_in = static_cast<uInt>(some);
    }
    const auto wanted = static_cast<uInt>(std::min<std::uint64_t>(bytes, std::numeric_limits<uInt>::max()));
    stream_->next_out = to;
    stream_->avail_out = wanted;
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    const std::uint64_t got = wanted - stream_->avail_out;
    if ((status != Z_OK && status != Z_STREAM_END) ||
        (got == 0 && stream_->avail_in == 0 && fetched_ == extent_.bytes))
      fail(ErrorCode::format, fmt::format("{}: deflated data cannot be inflated: {}", file_.path(),
                                          stream_->msg ? stream_->msg : "they end too early"));
    if (status == Z_STREAM_END && got < bytes)
      fail(ErrorCode::format, fmt::format("{}: deflated data end too early", file_.path()));
    crc_ = extend_crc(crc_, to, got);
    to += got;
    bytes -= got;
  }
}

std::uint32_t extend_crc(std::uint32_t crc, const void* data, std::uint64_t bytes) {
  return static_cast<std::uint32_t>(crc32_z(crc, static_cast<const unsigned char*>(data), bytes));
}

std::uint32_t joined_crc(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes) {
  return static_cast<std::uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

}  // namespace shoal::array
