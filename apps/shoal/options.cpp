// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "shoal/base/error.h"

namespace shoal::app {

std::uint64_t parse_size(const std::string& text, const std::string& option) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit(end);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  if (unit.ends_with("B")) unit.resize(unit.size() - 1);
  static constexpr const char* units[] = {"", "K", "M", "G", "T"};
  double factor = 1;
  for (const char* known : units) {
    if (unit == known && end != text.c_str() && std::isfinite(number) && number >= 0 &&
        number * factor < 0x1p62)
      return static_cast<std::uint64_t>(number * factor);
    factor *= 1024;
  }
  fail(ErrorCode::invalid_argument, fmt::format("{}: '{}' is not a size such as 800M or 1.5G", option, text));
}

std::vector<std::uint64_t> parse_sizes(const std::string& text, const std::string& option) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    sizes.push_back(parse_size(text.substr(begin, end - begin), option));
    begin = end + 1;
  }
  return sizes;
}

}  // namespace shoal::app
