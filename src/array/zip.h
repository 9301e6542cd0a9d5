// SPDX-License-Identifier: Apache-2.0
// The directory of zip archives (PKWARE's APPNOTE, with the 64-bit records), as far as .npz needs it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "array/file.h"

namespace shoal::array {

struct ZipEntry {
  static constexpr int stored = 0, deflated = 8;
  std::string name;
  int method = stored;
  std::uint32_t crc = 0;
  std::uint64_t compressed_bytes = 0, bytes = 0;
  std::uint64_t header_offset = 0;  // of the local header that precedes the data
};

/// Throws format, naming the file. Every length and offset is checked against the file's size.
std::vector<ZipEntry> read_zip_directory(const File& file);
/// Where the entry's data begin.
std::uint64_t zip_data_offset(const File& file, const ZipEntry& entry);

/// What precedes the data of a stored entry.
std::string format_zip_header(const ZipEntry& entry);
/// What ends an archive, written at `offset`.
std::string format_zip_directory(const std::vector<ZipEntry>& entries, std::uint64_t offset);

}  // namespace shoal::array
