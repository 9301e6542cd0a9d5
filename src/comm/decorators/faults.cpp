// SPDX-License-Identifier: Apache-2.0
#include "comm/decorators/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string_view>
#include <utility>

#include "shoal/base/error.h"
#include "shoal/base/random_bits.h"

namespace shoal::comm {
namespace {

constexpr std::array<std::pair<std::string_view, FaultAction>, 6> actions = {{
    {"die", FaultAction::die},
    {"silent", FaultAction::silent},
    {"throw", FaultAction::fail},
    {"exit", FaultAction::exit},
    {"delay", FaultAction::delay},
    {"lose", FaultAction::lose},
}};

bool can_be_lost(Call call) {
  return call == Call::put || call == call_of(Pattern::send) || call == call_of(Pattern::exchange);
}

// One fault: fields that are told apart by commas.
class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Fault parse() {
    std::istringstream fields(text_);
    for (std::string field; std::getline(fields, field, ',');) take(field);
    if (!has_action_) refuse("do is missing: die, silent, throw, exit, delay or lose");
    if ((fault_.action == FaultAction::delay) != has_delay_)
      refuse(has_delay_ ? "us belongs to do=delay" : "do=delay needs us=MICROSECONDS");
    const bool repeats = fault_.action == FaultAction::delay || fault_.action == FaultAction::lose;
    if (fault_.every > 0 && !repeats) refuse("every belongs to do=delay and do=lose");
    if (fault_.action == FaultAction::delay && fault_.every == 0) fault_.every = 1;
    if (fault_.action == FaultAction::lose && fault_.call && !can_be_lost(*fault_.call))
      refuse("pattern: only put, send and exchange can be lost");
    return fault_;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    fail(ErrorCode::invalid_argument, fmt::format("SHOAL_FAULT: '{}': {}", text_, what));
  }

  void take(const std::string& field) {
    const std::size_t equals = field.find('=');
    if (equals == std::string::npos) refuse(fmt::format("'{}' is not NAME=VALUE", field));
    const std::string name = field.substr(0, equals), value = field.substr(equals + 1);
    if (name == "rank")
      fault_.rank = static_cast<Rank>(number(name, value, 0, std::numeric_limits<Rank>::max()));
    else if (name == "after")
      fault_.after = number(name, value, 1, largest);
    else if (name == "every")
      fault_.every = number(name, value, 1, largest);
    else if (name == "seed")
      fault_.seed = number(name, value, 0, largest);
    else if (name == "us")
      set_delay(number(name, value, 0, 3'600'000'000));
    else if (name == "chance")
      fault_.chance = fraction(value);
    else if (name == "pattern")
      fault_.call = pattern(value);
    else if (name == "do")
      set_action(value);
    else
      refuse(fmt::format("{} is no field: rank, pattern, after, every, chance, seed, do, us", name));
  }

  std::uint64_t number(const std::string& name, const std::string& value, std::uint64_t least,
                       std::uint64_t most) const {
    std::uint64_t result = 0;
    bool good = !value.empty() && value.size() <= 18;
    for (const char c : value) {
      good = good && c >= '0' && c <= '9';
      result = result * 10 + static_cast<std::uint64_t>(c - '0');
    }
    if (!good || result < least || result > most)
      refuse(fmt::format("{}={} is not a whole number from {} to {}", name, value, least, most));
    return result;
  }
  double fraction(const std::string& value) const {
    char* end = nullptr;
    const double result = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(result >= 0.0 && result <= 1.0))
      refuse(fmt::format("chance={} is not between 0 and 1", value));
    return result;
  }
  Call pattern(const std::string& value) const {
    const std::optional<Call> call = find_call(value);
    if (!call || *call == Call::wait)
      refuse(fmt::format("pattern={} is none (all_reduce, send, put, ...)", value));
    return *call;
  }
  void set_delay(std::uint64_t us) {
    fault_.delay = std::chrono::microseconds(us);
    has_delay_ = true;
  }
  void set_action(const std::string& value) {
    const auto found =
        std::find_if(actions.begin(), actions.end(), [&](const auto& entry) { return entry.first == value; });
    if (found == actions.end())
      refuse(fmt::format("do={} is none of die, silent, throw, exit, delay, lose", value));
    fault_.action = found->second;
    has_action_ = true;
  }

  static constexpr std::uint64_t largest = 999'999'999'999'999'999;
  const std::string& text_;
  Fault fault_;
  bool has_action_ = false, has_delay_ = false;
};

}  // namespace

bool Fault::applies_to(Call made) const {
  if (call) return *call == made;
  return action != FaultAction::lose || can_be_lost(made);
}

bool Fault::strikes(Rank on, std::uint64_t number) const {
  if (rank && *rank != on) return false;
  if (number < after || (every == 0 ? number != after : (number - after) % every != 0)) return false;
  if (chance >= 1.0) return true;
  const std::uint64_t drawn = next_bits(next_bits(next_bits(seed) ^ static_cast<std::uint64_t>(on)) ^ number);
  return std::ldexp(static_cast<double>(drawn >> 11), -53) < chance;
}

std::vector<Fault> parse_faults(const std::string& text) {
  std::vector<Fault> faults;
  std::istringstream pieces(text);
  for (std::string piece; std::getline(pieces, piece, ';');)
    if (!piece.empty()) faults.push_back(Parser(piece).parse());
  return faults;
}

}  // namespace shoal::comm
