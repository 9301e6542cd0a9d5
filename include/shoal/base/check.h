// SPDX-License-Identifier: Apache-2.0
// Checks of our own assumptions (never of input: that is validated always, with a proper Error).
// A failed check throws CheckFailure with the expression, its operands and the place.
//
//   SHOAL_CHECK_EQ(a, b)          compares, and prints both sides
//   SHOAL_CHECK(level, condition) level: light (always cheap), normal, heavy (costs as much as the work)
//
// Checks up to SHOAL_CHECK_LEVEL are compiled in: 0 off, 1 light, 2 normal (the default), 3 heavy.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#ifndef SHOAL_CHECK_LEVEL
#define SHOAL_CHECK_LEVEL 2
#endif

namespace shoal {

enum class CheckLevel : int { light = 1, normal = 2, heavy = 3 };

class CheckFailure : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {

[[noreturn]] void check_failed(const char* expression, const std::string& operands, const char* file,
                               int line);

template <class A, class B>
[[noreturn]] void comparison_failed(const char* expression, const A& a, const B& b, const char* file,
                                    int line) {
  std::ostringstream operands;
  operands << a << " vs " << b;
  check_failed(expression, operands.str(), file, line);
}

}  // namespace detail
}  // namespace shoal

#define SHOAL_CHECK(level, condition)                                                      \
  do {                                                                                     \
    if constexpr (static_cast<int>(::shoal::CheckLevel::level) <= SHOAL_CHECK_LEVEL)       \
      if (!(condition)) ::shoal::detail::check_failed(#condition, "", __FILE__, __LINE__); \
  } while (false)

#define SHOAL_CHECK_EQ(a, b)                                                                      \
  do {                                                                                            \
    if constexpr (static_cast<int>(::shoal::CheckLevel::normal) <= SHOAL_CHECK_LEVEL)             \
      if (const auto& shoal_a = (a); true)                                                        \
        if (const auto& shoal_b = (b); !(shoal_a == shoal_b))                                     \
          ::shoal::detail::comparison_failed(#a " == " #b, shoal_a, shoal_b, __FILE__, __LINE__); \
  } while (false)
