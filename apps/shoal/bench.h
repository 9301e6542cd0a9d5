// SPDX-License-Identifier: Apache-2.0
// shoal bench: what is wrong with its options, told before anything is started.
#pragma once

#include <string>

namespace shoal::app {

/// What is wrong with a word of --bytes or --patterns: "" when nothing is.
std::string bench_bytes_error(const std::string& word);
std::string bench_pattern_error(const std::string& word);

}  // namespace shoal::app
