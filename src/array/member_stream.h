// SPDX-License-Identifier: Apache-2.0
// The bytes of a file, or of a member of a zip archive, from its beginning on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "array/file.h"
#include "array/zip.h"

struct z_stream_s;

namespace shoal::array {

/// Where bytes lie in a file, and whether they are deflated there.
struct Extent {
  std::uint64_t offset = 0, bytes = 0;  // in the file
  bool deflated = false;
  std::uint64_t inflated_bytes = 0;  // the same as `bytes` where they are not
};

/// Reads forward; whatever is skipped of a deflated member has to be inflated too.
class MemberStream {
 public:
  MemberStream(const File& file, const Extent& extent);
  ~MemberStream();

  /// Throws format where the member ends before.
  void read(void* to, std::uint64_t bytes);
  void skip(std::uint64_t bytes);
  std::uint64_t position() const { return position_; }
  /// CRC-32 of all bytes that a deflated member has given so far.
  std::uint32_t crc() const { return crc_; }

 private:
  void inflate_some(unsigned char* to, std::uint64_t bytes);
  const File& file_;
  Extent extent_;
  std::uint64_t position_ = 0;  // in the inflated bytes
  std::uint64_t fetched_ = 0;   // of the deflated ones
  std::uint32_t crc_ = 0;
  std::unique_ptr<z_stream_s> stream_;
  std::vector<unsigned char> compressed_;
};

/// CRC-32 as in zip archives: of `bytes` that follow what gave `crc` (0 at first).
std::uint32_t extend_crc(std::uint32_t crc, const void* data, std::uint64_t bytes);
/// Of two pieces, the second of which is so long.
std::uint32_t joined_crc(std::uint32_t first, std::uint32_t second, std::uint64_t second_bytes);

}  // namespace shoal::array
