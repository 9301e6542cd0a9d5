// SPDX-License-Identifier: Apache-2.0
#include "shoal/base/check.h"

namespace shoal::detail {

void check_failed(const char* expression, const std::string& operands, const char* file, int line) {
  std::string message = std::string(file) + ":" + std::to_string(line) + ": check failed: " + expression;
  if (!operands.empty()) message += " (" + operands + ")";
  throw CheckFailure(message);
}

}  // namespace shoal::detail
