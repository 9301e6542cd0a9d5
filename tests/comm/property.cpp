// SPDX-License-Identifier: Apache-2.0
#include "comm/property.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "comm/property_model.h"

namespace shoal::comm::property {
namespace {

constexpr std::array all_dtypes = {
    DType::int8,          DType::uint8,           DType::int16,          DType::uint16,
    DType::int32,         DType::uint32,          DType::int64,          DType::uint64,
    DType::float16,       DType::bfloat16,        DType::float32,        DType::float64,
    DType::complex64,     DType::complex128,      DType::boolean,        DType::located_int32,
    DType::located_int64, DType::located_float32, DType::located_float64};

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }
  std::int64_t count() {
    switch (below(8)) {
      case 0:
      case 1: return 0;
      case 2: return 1;
      case 3: return 1 + below(20'000);
      default: return 1 + below(300);
    }
  }

 private:
  std::mt19937_64 engine_;
};

NewCommunicator draw_communicator(Draw& random, int communicators) {
  NewCommunicator made;
  made.how = std::array{NewCommunicator::How::split, NewCommunicator::How::subset,
                        NewCommunicator::How::duplicate}[static_cast<std::size_t>(random.below(3))];
  made.parent = random.below(communicators);
  made.divisor = 1 + random.below(3);
  made.reversed = random.one_in(2);
  return made;
}

Step draw_operation(Draw& random, int communicators) {
  constexpr int patterns = static_cast<int>(Pattern::recv) + 1;
  Step step;
  // Messages more often: they alone are matched by tag and communicator.
  step.pattern = static_cast<Pattern>(std::min(random.below(patterns + 5), patterns - 1));
  step.communicator = random.below(communicators);
  step.dtype = all_dtypes[static_cast<std::size_t>(random.below(static_cast<int>(all_dtypes.size())))];
  do step.reduction = static_cast<Reduction>(random.below(6));
  while (!is_defined(step.reduction, step.dtype));
  step.root = random.below(8);
  const int lengths = 1 + random.below(4);
  for (int i = 0; i < lengths; ++i) step.counts.push_back(random.count());
  step.in_place = random.one_in(2);
  step.lifetime = random.one_in(2) ? 0 : 1 + random.below(6);
  return step;
}

std::string print(const NewCommunicator& made, int number) {
  switch (made.how) {
    case NewCommunicator::How::split:
      return fmt::format("c{} = c{}.split(rank % {}, {}rank)", number, made.parent, made.divisor,
                         made.reversed ? "-" : "");
    case NewCommunicator::How::subset:
      return fmt::format("c{} = c{}.subset(ranks % {} == 0{})", number, made.parent, made.divisor,
                         made.reversed ? ", reversed" : "");
    case NewCommunicator::How::duplicate: return fmt::format("c{} = c{}.duplicate()", number, made.parent);
  }
  return "";
}

bool reduces(Pattern pattern) {
  return pattern == Pattern::reduce || pattern == Pattern::all_reduce || pattern == Pattern::reduce_scatter ||
         pattern == Pattern::scan || pattern == Pattern::exclusive_scan;
}

std::string print(const Step& step) {
  std::string text = fmt::format("c{}.{}", step.communicator, to_string(step.pattern));
  if (step.pattern == Pattern::barrier) return text;
  text += fmt::format(" {} counts {{", to_string(step.dtype));
  for (std::size_t i = 0; i < step.counts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", step.counts[i]);
  text += "}";
  if (reduces(step.pattern)) text += fmt::format(", {}", to_string(step.reduction));
  text += fmt::format(", root {}", step.root);
  if (step.in_place) text += ", in place";
  return text;
}

// Numbers of communicators that no longer exist become the world.
void renumber(Script& script, int dropped) {
  const auto fix = [&](int& number) {
    if (number == dropped)
      number = 0;
    else if (number > dropped)
      --number;
  };
  for (Step& step : script.steps) {
    fix(step.communicator);
    if (step.creates) fix(step.creates->parent);
  }
}

Script without(const Script& script, std::size_t begin, std::size_t end) {
  Script smaller = script;
  for (std::size_t i = end; i-- > begin;) {
    int number = 0;
    for (std::size_t k = 0; k <= i; ++k) number += smaller.steps[k].creates.has_value();
    const bool made = smaller.steps[i].creates.has_value();
    smaller.steps.erase(smaller.steps.begin() + static_cast<std::ptrdiff_t>(i));
    if (made) renumber(smaller, number);
  }
  return smaller;
}

// Runs of steps are dropped, halves first.
bool drop_steps(Script& script, const std::function<bool(const Script&)>& fails) {
  bool changed = false;
  for (std::size_t length = std::max<std::size_t>(script.steps.size() / 2, 1); length > 0; length /= 2)
    for (std::size_t begin = 0; begin < script.steps.size();) {
      const Script smaller = without(script, begin, std::min(begin + length, script.steps.size()));
      if (smaller.steps.size() < script.steps.size() && fails(smaller)) {
        script = smaller;
        changed = true;
      } else {
        begin += length;
      }
    }
  return changed;
}

template <class Change>
bool attempt(Script& script, const std::function<bool(const Script&)>& fails, Change&& change) {
  Script smaller = script;
  change(smaller);
  if (!fails(smaller)) return false;
  script = std::move(smaller);
  return true;
}

bool simplify_step(Script& script, std::size_t i, const std::function<bool(const Script&)>& fails) {
  bool changed = false;
  if (script.steps[i].lifetime > 0)
    changed |= attempt(script, fails, [i](Script& s) { s.steps[i].lifetime = 0; });
  if (script.steps[i].communicator > 0)
    changed |= attempt(script, fails, [i](Script& s) { s.steps[i].communicator = 0; });
  if (script.steps[i].in_place)
    changed |= attempt(script, fails, [i](Script& s) { s.steps[i].in_place = false; });
  if (script.steps[i].counts.size() > 1)
    changed |= attempt(script, fails, [i](Script& s) { s.steps[i].counts.pop_back(); });
  for (std::size_t k = 0; k < script.steps[i].counts.size(); ++k) {
    const std::int64_t count = script.steps[i].counts[k];
    for (const std::int64_t smaller : {std::int64_t{0}, std::int64_t{1}, count / 2, count - 1})
      if (smaller >= 0 && smaller < count &&
          attempt(script, fails, [=](Script& s) { s.steps[i].counts[k] = smaller; })) {
        changed = true;
        break;
      }
  }
  return changed;
}

}  // namespace

Script draw(std::uint64_t seed, int max_ranks, int ranks) {
  Draw random(seed);
  Script script{seed, ranks > 0 ? ranks : 1 + random.below(max_ranks), {}};
  int communicators = 1;
  const int steps = 5 + random.below(25);
  for (int i = 0; i < steps; ++i) {
    Step step;
    if (communicators < 6 && random.one_in(5)) {
      step.creates = draw_communicator(random, communicators++);
    } else {
      step = draw_operation(random, communicators);
    }
    step.id = static_cast<std::uint64_t>(i);
    script.steps.push_back(step);
  }
  return script;
}

std::string print(const Script& script) {
  std::string text = fmt::format("seed {}, {} ranks\n", script.seed, script.ranks);
  int number = 0;
  for (const Step& step : script.steps) {
    text += fmt::format("  {:2}  ", step.id);
    if (step.creates)
      text += print(*step.creates, ++number);
    else
      text +=
          print(step) + (step.lifetime > 0 ? fmt::format(", waited for {} steps later", step.lifetime) : "");
    text += '\n';
  }
  return text;
}

Script shrink(Script script, const std::function<bool(const Script&)>& fails) {
  for (bool changed = true; changed;) {
    changed = drop_steps(script, fails);
    while (script.ranks > 1 && attempt(script, fails, [](Script& s) { --s.ranks; })) changed = true;
    for (std::size_t i = 0; i < script.steps.size(); ++i) changed |= simplify_step(script, i, fails);
  }
  return script;
}

}  // namespace shoal::comm::property
