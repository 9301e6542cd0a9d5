// SPDX-License-Identifier: Apache-2.0
#include "array/zip.h"

#include <algorithm>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, entry_signature = 0x02014b50,
                        end_signature = 0x06054b50, end64_signature = 0x06064b50,
                        locator64_signature = 0x07064b50;
constexpr std::size_t local_bytes = 30, end_bytes = 22, end64_bytes = 56, locator64_bytes = 20;
constexpr std::uint32_t elsewhere32 = 0xffffffff;  // the value is in the 64-bit record
constexpr std::uint16_t zip64_id = 1;

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  fail(ErrorCode::format, fmt::format("{}: zip archive: {}", path, what));
}

// Little-endian fields, one after the other.
class Fields {
 public:
  Fields(std::span<const unsigned char> bytes, const std::string& path) : bytes_(bytes), path_(path) {}
  std::uint64_t next(std::size_t size) {
    const std::span<const unsigned char> field = take(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | field[i];
    return value;
  }
  std::uint32_t u32() { return static_cast<std::uint32_t>(next(4)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(next(2)); }
  std::span<const unsigned char> take(std::size_t size) {
    if (size > bytes_.size()) bad(path_, "a record ends too early");
    const std::span<const unsigned char> field = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    return field;
  }
  bool empty() const { return bytes_.empty(); }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::span<const unsigned char> bytes_;
  const std::string& path_;
};

std::vector<unsigned char> bytes_at(const File& file, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t size = file.size();
  if (offset > size || bytes > size - offset)
    bad(file.path(), fmt::format("{} bytes at {} lie beyond its {}", bytes, offset, size));
  std::vector<unsigned char> data(bytes);
  file.read(offset, data.data(), data.size());
  return data;
}

struct Directory {
  std::uint64_t entries = 0, bytes = 0, offset = 0;
};

Directory directory64(const File& file, std::uint64_t end_offset) {
  if (end_offset < locator64_bytes) bad(file.path(), "no locator of the 64-bit end record");
  const std::vector<unsigned char> locator = bytes_at(file, end_offset - locator64_bytes, locator64_bytes);
  Fields fields(locator, file.path());
  if (fields.u32() != locator64_signature) bad(file.path(), "no locator of the 64-bit end record");
  fields.take(4);
  const std::vector<unsigned char> end = bytes_at(file, fields.next(8), end64_bytes);
  Fields record(end, file.path());
  if (record.u32() != end64_signature) bad(file.path(), "no 64-bit end record where its locator says");
  record.take(28);  // sizes, versions, disks, entries on this disk
  Directory directory;
  directory.entries = record.next(8);
  directory.bytes = record.next(8);
  directory.offset = record.next(8);
  return directory;
}

Directory find_directory(const File& file) {
  constexpr std::uint64_t longest_comment = 0xffff;
  const std::uint64_t size = file.size();
  const std::uint64_t length = std::min<std::uint64_t>(size, end_bytes + longest_comment);
  const std::vector<unsigned char> tail = bytes_at(file, size - length, length);
  for (std::size_t at = tail.size() + 1 - std::min(tail.size() + 1, end_bytes); at-- > 0;) {
    Fields fields(std::span<const unsigned char>(tail).subspan(at), file.path());
    if (fields.u32() != end_signature) continue;
    fields.take(6);
    Directory directory;
    directory.entries = fields.u16();
    directory.bytes = fields.u32();
    directory.offset = fields.u32();
    if (directory.entries == 0xffff || directory.bytes == elsewhere32 || directory.offset == elsewhere32)
      return directory64(file, size - length + at);
    return directory;
  }
  bad(file.path(), "no end record (not a zip archive, or not whole)");
}

// The 64-bit values of an entry, in the order of the fields that refer to them.
void read_zip64(Fields extra, ZipEntry& entry, const std::string& path) {
  while (extra.left() >= 4) {
    const std::uint16_t id = extra.u16();
    Fields field(extra.take(extra.u16()), path);
    if (id != zip64_id) continue;
    for (std::uint64_t* value : {&entry.bytes, &entry.compressed_bytes, &entry.header_offset})
      if (*value == elsewhere32) *value = field.next(8);
    return;
  }
}

void put(std::string& out, std::size_t size, std::uint64_t value) {
  for (std::size_t i = 0; i < size; ++i, value >>= 8) out += static_cast<char>(value & 0xff);
}

// The fields that an entry has both before its data and in the directory.
void put_common(std::string& out, const ZipEntry& entry, std::uint16_t extra_bytes) {
  constexpr std::uint16_t version = 45, names_are_utf8 = 0x800, first_of_january_1980 = 0x21;
  put(out, 2, version);
  put(out, 2, names_are_utf8);
  put(out, 2, ZipEntry::stored);
  put(out, 2, 0);
  put(out, 2, first_of_january_1980);
  put(out, 4, entry.crc);
  put(out, 4, elsewhere32);
  put(out, 4, elsewhere32);
  put(out, 2, entry.name.size());
  put(out, 2, extra_bytes);
}

}  // namespace

std::vector<ZipEntry> read_zip_directory(const File& file) {
  const Directory directory = find_directory(file);
  const std::vector<unsigned char> bytes = bytes_at(file, directory.offset, directory.bytes);
  Fields fields(bytes, file.path());
  std::vector<ZipEntry> entries;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (fields.u32() != entry_signature) bad(file.path(), fmt::format("entry {} has no signature", i));
    ZipEntry entry;
    fields.take(4);
    const std::uint16_t flags = fields.u16();
    entry.method = fields.u16();
    fields.take(4);
    entry.crc = fields.u32();
    entry.compressed_bytes = fields.u32();
    entry.bytes = fields.u32();
    const std::uint16_t name = fields.u16(), extra = fields.u16(), comment = fields.u16();
    fields.take(8);
    entry.header_offset = fields.u32();
    const std::span<const unsigned char> characters = fields.take(name);
    entry.name.assign(characters.begin(), characters.end());
    read_zip64(Fields(fields.take(extra), file.path()), entry, file.path());
    fields.take(comment);
    if (flags & 1) fail(ErrorCode::unsupported, fmt::format("{}: {} is encrypted", file.path(), entry.name));
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::uint64_t zip_data_offset(const File& file, const ZipEntry& entry) {
  const std::vector<unsigned char> header = bytes_at(file, entry.header_offset, local_bytes);
  Fields fields(header, file.path());
  if (fields.u32() != local_signature)
    bad(file.path(), fmt::format("no header before the data of {}", entry.name));
  fields.take(22);
  const std::uint64_t name = fields.u16(), extra = fields.u16();
  const std::uint64_t offset = entry.header_offset + local_bytes + name + extra;
  if (offset > file.size() || entry.compressed_bytes > file.size() - offset)
    bad(file.path(),
        fmt::format("the {} bytes of {} lie beyond its end", entry.compressed_bytes, entry.name));
  return offset;
}

std::string format_zip_header(const ZipEntry& entry) {
  constexpr std::uint16_t extra_bytes = 4 + 16;
  std::string out;
  put(out, 4, local_signature);
  put_common(out, entry, extra_bytes);
  out += entry.name;
  put(out, 2, zip64_id);
  put(out, 2, extra_bytes - 4);
  put(out, 8, entry.bytes);
  put(out, 8, entry.compressed_bytes);
  return out;
}

std::string format_zip_directory(const std::vector<ZipEntry>& entries, std::uint64_t offset) {
  constexpr std::uint16_t version = 45, extra_bytes = 4 + 24;
  std::string out;
  for (const ZipEntry& entry : entries) {
    put(out, 4, entry_signature);
    put(out, 2, version);
    put_common(out, entry, extra_bytes);
    put(out, 2 + 2 + 2 + 4, 0);  // comment, disk, attributes
    put(out, 4, elsewhere32);
    out += entry.name;
    put(out, 2, zip64_id);
    put(out, 2, extra_bytes - 4);
    put(out, 8, entry.bytes);
    put(out, 8, entry.compressed_bytes);
    put(out, 8, entry.header_offset);
  }
  const std::uint64_t directory_bytes = out.size();
  put(out, 4, end64_signature);
  put(out, 8, end64_bytes - 12);
  put(out, 2, version);
  put(out, 2, version);
  put(out, 4 + 4, 0);  // disks
  put(out, 8, entries.size());
  put(out, 8, entries.size());
  put(out, 8, directory_bytes);
  put(out, 8, offset);
  put(out, 4, locator64_signature);
  put(out, 4, 0);
  put(out, 8, offset + directory_bytes);
  put(out, 4, 1);  // disks in all
  put(out, 4, end_signature);
  put(out, 4, 0);
  put(out, 2, 0xffff);
  put(out, 2, 0xffff);
  put(out, 4, elsewhere32);
  put(out, 4, elsewhere32);
  put(out, 2, 0);
  return out;
}

}  // namespace shoal::array
