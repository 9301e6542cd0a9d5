// SPDX-License-Identifier: Apache-2.0
// One step through bytes that should be UTF-8 and may not be (Unicode 15, table 3-7: no overlong
// forms, no surrogates, nothing above U+10FFFF).
#pragma once

#include <cstddef>
#include <string_view>

namespace shoal::infer {

inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  enum class Kind {
    valid,       // `length` bytes are one character
    invalid,     // `length` bytes belong to no character, whatever follows
    incomplete,  // all `length` remaining bytes may be the beginning of a character
  };
  Kind kind = Kind::valid;
  std::size_t length = 1;
};

/// What stands at the beginning of `bytes`, which are not empty.
inline Utf8Step utf8_step(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Utf8Step::Kind::valid, 1};
  const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Step::Kind::invalid, 1};
  // The second byte excludes overlong forms, surrogates and what lies beyond U+10FFFF.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Utf8Step::Kind::incomplete, i};
    if (byte(i) < low || byte(i) > high) return {Utf8Step::Kind::invalid, i};
    low = 0x80;
    high = 0xBF;
  }
  return {Utf8Step::Kind::valid, size};
}

}  // namespace shoal::infer
