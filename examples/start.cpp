// SPDX-License-Identifier: Apache-2.0
#include "start.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <exception>

#include "shoal/comm/transport.h"

namespace examples {
namespace {

int number_of(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1)
    shoal::fail(shoal::ErrorCode::invalid_argument, fmt::format("--ranks {}: not a number from 1 on", text));
  return number;
}

Arguments arguments_of(const std::string& program, int argc, char** argv) {
  Arguments arguments;
  arguments.output = program + ".png";
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if ((option == "--ranks" || option == "--output") && i + 1 < argc) {
      const std::string value = argv[++i];
      if (option == "--ranks")
        arguments.threads = number_of(value);
      else
        arguments.output = value;
    } else if (option.starts_with("-") || !arguments.input.empty()) {
      shoal::fail(shoal::ErrorCode::invalid_argument,
                  fmt::format("usage: {} [--ranks N] [--output FILE.png] [FILE]", program));
    } else {
      arguments.input = option;
    }
  }
  return arguments;
}

}  // namespace

int start(int argc, char** argv,
          const std::function<void(shoal::comm::Communicator&, const Arguments&)>& body) {
  try {
    const std::string path = argv[0], program = path.substr(path.find_last_of('/') + 1);
    const Arguments arguments = arguments_of(program, argc, argv);
    return shoal::comm::run({.threads = arguments.threads}, [&](shoal::comm::Communicator& world) {
      say(world, "{}: {} ranks ({}). More: --ranks N for threads, or mpirun -n N, oshrun -n N, srun -n N {}",
          program, world.size(), world.transport().name(), program);
      body(world, arguments);
      say(world, "picture: {}", arguments.output);
      return 0;
    });
  } catch (const std::exception& error) {
    fmt::print(stderr, "shoal: {}\n", error.what());
    return 1;
  }
}

void expect(bool condition, const std::string& what) {
  if (!condition) throw shoal::comm::AgreedError(shoal::ErrorCode::numeric, "wrong: expected " + what);
}

}  // namespace examples
