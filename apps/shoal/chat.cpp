// SPDX-License-Identifier: Apache-2.0
#include "chat.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "interrupt.h"
#include "launch.h"
#include "model_setup.h"
#include "shoal/base/error.h"

namespace shoal::app {
namespace {

// Lines of standard input. Not a stream: Ctrl-C must be able to end the waiting.
class LineReader {
 public:
  /// The next line without its end; nothing at the end of the input or when interrupted.
  std::optional<std::string> next() {
    for (;;) {
      if (const std::size_t end = pending_.find('\n'); end != std::string::npos) {
        std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        return line;
      }
      if (interrupted()) return std::nullopt;
      if (at_end_) {
        if (pending_.empty()) return std::nullopt;
        return std::exchange(pending_, std::string());
      }
      pollfd input{STDIN_FILENO, POLLIN, 0};
      if (poll(&input, 1, 100) <= 0) continue;
      char block[4096];
      const ssize_t n = read(STDIN_FILENO, block, sizeof block);
      if (n > 0)
        pending_.append(block, static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR)
        at_end_ = true;
    }
  }

 private:
  std::string pending_;
  bool at_end_ = false;
};

}  // namespace

void converse(Generation generation, const infer::ChatTemplate& chat, const RunOptions& options) {
  const bool terminal = stdout_is_terminal();
  if (terminal) show("Type a message; /reset begins anew, /exit or Ctrl-D ends, Ctrl-C stops an answer.\n");
  LineReader lines;
  bool started = false, ended = false;
  for (;;) {
    if (terminal) show("\n> ");
    const std::optional<std::string> line = lines.next();
    if (!line || *line == "/exit") break;
    if (line->empty()) continue;
    if (*line == "/reset") {
      generation.reset();
      started = false;
      continue;
    }
    try {
      check_utf8(*line, "this message");
    } catch (const Error& error) {
      fmt::print(stderr, "shoal: {}\n", error.what());
      continue;
    }
    const infer::Message message{infer::Role::user, *line};
    std::vector<infer::Token> tokens;
    if (started) {
      tokens = chat.encode_next(message, ended);
    } else {
      std::vector<infer::Message> messages;
      if (!options.system.empty()) messages.push_back({infer::Role::system, options.system});
      messages.push_back(message);
      tokens = chat.encode(messages);
    }
    if (std::ssize(tokens) >= generation.room()) {
      fmt::print(stderr,
                 "shoal: the message has {} tokens, but only {} of the context's {} positions are free: "
                 "/reset begins anew\n",
                 tokens.size(), generation.room(), generation.context());
      continue;
    }
    ended = generation.answer(tokens, false, show);
    started = true;
    show("\n");
    clear_interrupt();
  }
}

}  // namespace shoal::app
