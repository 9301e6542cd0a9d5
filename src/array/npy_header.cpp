// SPDX-License-Identifier: Apache-2.0
#include "array/npy_header.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/base/error.h"

namespace shoal::array {
namespace {

constexpr std::string_view magic = "\x93NUMPY";
constexpr std::size_t longest_header = std::size_t{1} << 20;  // of sane files: some 100 bytes
constexpr std::size_t most_axes = 64;                         // as NumPy 2

struct TypeName {
  DType dtype;
  std::string_view name;  // without the byte order
};
constexpr TypeName type_names[] = {
    {DType::float64, "f8"},   {DType::float32, "f4"}, {DType::float16, "f2"}, {DType::complex128, "c16"},
    {DType::complex64, "c8"}, {DType::int64, "i8"},   {DType::int32, "i4"},   {DType::int16, "i2"},
    {DType::int8, "i1"},      {DType::uint64, "u8"},  {DType::uint32, "u4"},  {DType::uint16, "u2"},
    {DType::uint8, "u1"},     {DType::boolean, "b1"},
};

// The dictionary: a Python literal with three keys.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool seen[3] = {};
    expect('{');
    while (!accept('}')) {
      const std::string_view key = string();
      expect(':');
      const int which = key == "descr" ? 0 : key == "fortran_order" ? 1 : key == "shape" ? 2 : -1;
      if (which < 0) bad(fmt::format("has the unknown key '{}'", key));
      if (seen[which]) bad(fmt::format("has the key '{}' twice", key));
      seen[which] = true;
      if (which == 0) descr(header);
      if (which == 1) header.fortran_order = boolean();
      if (which == 2) header.shape = tuple();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) bad("goes on after its '}'");
    constexpr std::string_view keys[] = {"descr", "fortran_order", "shape"};
    for (int i = 0; i < 3; ++i)
      if (!seen[i]) bad(fmt::format("has no '{}'", keys[i]));
    return header;
  }

 private:
  [[noreturn]] void bad(const std::string& what) const {
    fail(ErrorCode::format, fmt::format("{}: the .npy header {}", file_, what));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad(fmt::format("has no '{}' at byte {} of its text", c, at_));
  }
  std::string_view string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') bad(fmt::format("has no string at byte {} of its text", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad("ends within a string");
    const std::string_view value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool word(std::string_view expected) {
    skip_space();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  bool boolean() {
    if (word("True")) return true;
    if (word("False")) return false;
    bad("has a 'fortran_order' that is neither True nor False");
  }
  void descr(NpyHeader& header) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[')
      fail(ErrorCode::unsupported,
           fmt::format("{}: 'descr' is of a structured array, which is not read", file_));
    const std::string_view text = string();
    for (const TypeName& type : type_names) {
      if (text.size() != type.name.size() + 1 || !text.ends_with(type.name)) continue;
      const char order = text.front();
      const bool one_byte = size_of(type.dtype) == 1;
      if (std::string_view(one_byte ? "|<>=" : "<>=").find(order) == std::string_view::npos) continue;
      header.dtype = type.dtype;
      constexpr char native = std::endian::native == std::endian::little ? '<' : '>';
      header.swapped = !one_byte && order != '=' && order != native;
      return;
    }
    fail(ErrorCode::unsupported,
         fmt::format("{}: 'descr' is '{}', an element type that is not read", file_, text));
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip_space();
      Index extent = -1;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0)
        bad(fmt::format("has a bad 'shape' at byte {} of its text", at_));
      at_ = static_cast<std::size_t>(end - text_.data());
      (void)word("L");  // of Python 2
      shape.push_back(extent);
      if (shape.size() > most_axes) bad(fmt::format("has a 'shape' of more than {} axes", most_axes));
      if (accept(',')) continue;
      expect(')');
      if (shape.size() == 1) bad("has a 'shape' that is a number, not a tuple");
      break;
    }
    return shape;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
};

// Where the text begins, and how long it is, from the first 12 bytes.
struct Text {
  std::size_t begin, length;
};
Text text_of(std::span<const std::byte> prefix, const std::string& file) {
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(prefix[i]); };
  if (prefix.size() < magic.size() + 4 || std::memcmp(prefix.data(), magic.data(), magic.size()) != 0)
    fail(ErrorCode::format, fmt::format("{}: not a .npy file (it does not begin with \\x93NUMPY)", file));
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    fail(ErrorCode::unsupported,
         fmt::format("{}: .npy version {}.{}; 1 to 3 are read", file, version, byte(7)));
  if (version == 1) return {10, byte(8) | byte(9) << 8};
  if (prefix.size() < npy_prefix_bytes)
    fail(ErrorCode::format, fmt::format("{}: ends within the .npy header", file));
  return {12, byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24};
}

}  // namespace

std::uint64_t NpyHeader::data_bytes() const {
  return static_cast<std::uint64_t>(size_of_shape(shape)) * size_of(dtype);
}

std::size_t npy_header_bytes(std::span<const std::byte> prefix, const std::string& file) {
  const Text text = text_of(prefix, file);
  if (text.length > longest_header)
    fail(ErrorCode::format, fmt::format("{}: the .npy header is {} bytes long; {} at most are read", file,
                                        text.length, longest_header));
  return text.begin + text.length;
}

NpyHeader parse_npy_header(std::span<const std::byte> bytes, const std::string& file) {
  const std::size_t length = npy_header_bytes(bytes, file);
  if (length > bytes.size()) fail(ErrorCode::format, fmt::format("{}: ends within the .npy header", file));
  const Text text = text_of(bytes, file);
  NpyHeader header =
      HeaderParser({reinterpret_cast<const char*>(bytes.data()) + text.begin, text.length}, file).parse();
  header.data_offset = length;
  Index elements = 0;
  std::uint64_t total = 0;
  try {
    elements = size_of_shape(header.shape);
  } catch (const Error& error) {
    fail(ErrorCode::format, fmt::format("{}: 'shape': {}", file, error.what()));
  }
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(elements), size_of(header.dtype), &total) ||
      total > static_cast<std::uint64_t>(std::numeric_limits<Index>::max()))
    fail(ErrorCode::format,
         fmt::format("{}: 'shape' {} has more bytes than a file can", file, to_string(header.shape)));
  return header;
}

std::string format_npy_header(DType dtype, const Shape& shape, bool fortran_order) {
  if (shape.size() > most_axes)
    fail(ErrorCode::unsupported, fmt::format("a .npy file of {} axes; at most {}", shape.size(), most_axes));
  const auto* type = std::find_if(std::begin(type_names), std::end(type_names),
                                  [dtype](const TypeName& t) { return t.dtype == dtype; });
  const char order = size_of(dtype) == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': {}, 'shape': ({}{}), }}", order, type->name,
                  fortran_order ? "True" : "False", fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  constexpr std::size_t prefix = 10, alignment = 64;
  text.append((alignment - (prefix + text.size() + 1) % alignment) % alignment, ' ');
  text += '\n';
  std::string header(magic);
  header += {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

}  // namespace shoal::array
