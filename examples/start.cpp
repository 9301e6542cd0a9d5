// SPDX-License-Identifier: Apache-2.0
#include "start.h"

#include <charconv>
#include <cstdio>
#include <exception>

#include "shoal/comm/transport.h"

namespace examples {
namespace {

struct Wrong {
  std::string what;
};

int number_of(const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 1)
    throw Wrong{fmt::format("--ranks {}: not a number from 1 on", text)};
  return number;
}

void parse(int argc, char** argv, bool takes_file, Arguments& arguments) {
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--ranks" || option == "--output") {
      if (i + 1 == argc) throw Wrong{option + ": its value is missing"};
      const std::string value = argv[++i];
      if (option == "--ranks")
        arguments.threads = number_of(value);
      else
        arguments.output = value;
    } else if (option.starts_with("-")) {
      throw Wrong{option + ": unknown option"};
    } else if (!takes_file || !arguments.input.empty()) {
      throw Wrong{fmt::format("{}: {}", option, takes_file ? "a second file" : "this example reads no file")};
    } else {
      arguments.input = option;
    }
  }
}

}  // namespace

int start(int argc, char** argv, const Body& body, const std::string& file) {
  const std::string path = argv[0], program = path.substr(path.find_last_of('/') + 1);
  const std::string usage = fmt::format("usage: {} [--ranks N] [--output FILE.png]{}", program,
                                        file.empty() ? "" : " [" + file + "]");
  for (int i = 1; i < argc; ++i)
    if (argv[i] == std::string("--help")) {
      fmt::print("{}\n", usage);
      return 0;
    }
  Arguments arguments;
  arguments.output = program + ".png";
  std::string wrong;  // is told by the job, which tells it once
  try {
    parse(argc, argv, !file.empty(), arguments);
  } catch (const Wrong& error) {
    wrong = error.what;
    arguments.threads = 1;
  }
  try {
    return shoal::comm::run({.threads = arguments.threads}, [&](shoal::comm::Communicator& world) {
      if (!wrong.empty())
        throw shoal::comm::AgreedError(shoal::ErrorCode::invalid_argument, wrong + "; " + usage);
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
