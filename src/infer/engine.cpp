// SPDX-License-Identifier: Apache-2.0
#include "shoal/infer/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "infer/segment_layout.h"
#include "shoal/base/error.h"
#include "shoal/comm/symmetric_segments.h"
#include "shoal/infer/kv_cache.h"
#include "shoal/infer/stage.h"

namespace shoal::infer {
namespace {

using Clock = std::chrono::steady_clock;

// A pair of neighbours in the pipeline and what they put into each other's segments.
class Link {
 public:
  Link(comm::Communicator& communicator, int low, int high, std::size_t half_bytes)
      : pair_(communicator.subset(std::array{low, high})),
        other_(1 - pair_.rank()),
        half_bytes_(half_bytes),
        data_(pair_, 2 * half_bytes),
        credits_(pair_, 0) {}

  /// The half that holds the next message, once it is there. Throws timeout unless `forever`.
  std::byte* receive(bool forever) {
    if (forever)
      data_.wait_forever(other_, received_ + 1);
    else
      data_.wait(other_, received_ + 1);
    return data_.from(other_).data() + received_++ % 2 * half_bytes_;
  }
  /// Tells the sender that everything received so far may be written over.
  void acknowledge() { credits_.signal(other_, received_); }

  /// Whether send() has to wait for an acknowledgement.
  bool full() const { return sent_ >= taken_ + 2; }
  void wait_for_room() {
    credits_.wait(other_, sent_ - 1);
    taken_ = sent_ - 1;
  }
  void send(const std::byte* half, std::size_t bytes) {
    data_.put(other_, sent_ % 2 * half_bytes_, View<const std::byte>(half, bytes), sent_ + 1);
    ++sent_;
  }
  /// The other side is known to have taken everything.
  void drained() { taken_ = sent_; }

  void flush() {
    data_.flush();
    credits_.flush();
  }

 private:
  comm::Communicator pair_;
  int other_;
  std::size_t half_bytes_;
  comm::SymmetricSegments<std::byte> data_;     // two halves, used in turn
  comm::SymmetricSegments<std::byte> credits_;  // signals alone
  std::uint64_t sent_ = 0, taken_ = 0, received_ = 0;
};

}  // namespace

std::size_t Engine::symmetric_bytes(const Plan& plan) {
  return infer::symmetric_bytes(static_cast<int>(plan.pes.size()), plan.options.chunk_tokens,
                                plan.config.width);
}

class Engine::State {
 public:
  State(const comm::Communicator& communicator, const Plan& plan, const Weights& weights, ThreadTeam& team,
        const tensor::KernelSet& kernels, const SamplerOptions& sampling)
      : comm_(communicator),
        plan_(plan),
        mine_(plan_.pes.at(static_cast<std::size_t>(communicator.rank()))),
        half_(plan.options.chunk_tokens, plan.config.width),
        stop_(comm_, 0),
        kv_(plan_.config, mine_.layers(), plan.options.context, plan.options.kv_format),
        stage_(plan_.config, weights, kv_, kernels, team, plan.options.chunk_tokens),
        sampler_(sampling),
        buffer_(half_.bytes) {
    if (mine_.has_output) logits_.resize(static_cast<std::size_t>(plan.config.vocabulary));
    link_up();
    report_.pe = comm_.rank();
    report_.layer_begin = static_cast<std::int32_t>(mine_.layer_begin);
    report_.layer_end = static_cast<std::int32_t>(mine_.layer_end);
    report_.has_embedding = mine_.has_embedding;
    report_.has_output = mine_.has_output;
    report_.idle = mine_.idle();
    report_.memory_bytes = weights.memory.size() + kv_.bytes() + stage_.scratch_bytes() + mine_.segment_bytes;
  }

  // The driver's side.
  Token feed(std::span<const Token> tokens, const std::function<bool()>& stop);
  void truncate(std::int64_t length);
  void stop();
  // Everybody else's.
  void serve();

  std::vector<PeReport> reports();
  std::int64_t position() const { return position_; }
  std::int64_t context() const { return plan_.options.context; }
  std::span<const float> last_logits() const { return logits_; }

 private:
  std::size_t chunk() const { return static_cast<std::size_t>(plan_.options.chunk_tokens); }
  std::size_t width() const { return static_cast<std::size_t>(plan_.config.width); }
  std::span<float> hidden(std::byte* half, std::size_t tokens) const {
    return {reinterpret_cast<float*>(half + half_.hidden), tokens * width()};
  }
  std::span<Token> token_ids(std::byte* half, std::size_t tokens) const {
    return {reinterpret_cast<Token*>(half + half_.tokens), tokens};
  }

  template <class Work>
  auto computing(Work&& work) {
    struct Timer {
      double& total;
      Clock::time_point start = Clock::now();
      ~Timer() { total += std::chrono::duration<double>(Clock::now() - start).count(); }
    } timer{report_.compute_s};
    return work();
  }

  void forget(std::int64_t length);
  void link_up();
  void check_tokens(std::span<const Token> tokens) const;
  std::byte* receive(Link& link, bool forever);
  void send(Link& link, const std::byte* half, std::size_t bytes);
  void forward(std::byte* half);
  Token sample(std::span<const float> hidden, std::int64_t next_position);
  void deliver(std::byte* half);
  Token collect(std::int64_t next_position);
  void process_chunk(std::byte* half);

  comm::Communicator comm_;
  const Plan plan_;
  const PePlan& mine_;
  HalfLayout half_;
  comm::SymmetricSegments<std::byte> stop_;  // PE 0's signal to PEs outside the pipeline
  std::shared_ptr<Link> previous_, next_;    // neighbours in the pipeline
  std::shared_ptr<Link> answers_;            // between the last PE of the pipeline and PE 0
  KvCache kv_;
  Stage stage_;
  Sampler sampler_;
  std::vector<float> logits_;
  std::vector<std::byte> buffer_;  // PE 0 makes its chunks here, in the form of a half
  std::int64_t position_ = 0;
  bool drained_ = true;  // PE 0: an answer has come round since the last message was sent
  PeReport report_;
};

// The text from `length` on. (The cache of a PE without layers stays empty.)
void Engine::State::forget(std::int64_t length) {
  if (mine_.layers() > 0) kv_.truncate(length);
  if (mine_.has_output) sampler_.truncate(length);
}

// Every PE links to its neighbours from the front to the back; the ends of a pipeline of two share a link.
void Engine::State::link_up() {
  const std::vector<int>& pipeline = plan_.pipeline;
  const auto place = std::ranges::find(pipeline, comm_.rank());
  if (place == pipeline.end() || pipeline.size() == 1) return;
  const auto link = [&](int low, int high) { return std::make_shared<Link>(comm_, low, high, half_.bytes); };
  if (place != pipeline.begin()) previous_ = link(*std::prev(place), *place);
  if (std::next(place) != pipeline.end()) next_ = link(*place, *std::next(place));
  if (pipeline.size() == 2)
    answers_ = next_ ? next_ : previous_;
  else if (!previous_ || !next_)
    answers_ = link(pipeline.front(), pipeline.back());
}

std::byte* Engine::State::receive(Link& link, bool forever) {
  const auto start = Clock::now();
  std::byte* half = link.receive(forever);
  if (!header_of(half).begins) report_.wait_s += std::chrono::duration<double>(Clock::now() - start).count();
  return half;
}

void Engine::State::send(Link& link, const std::byte* half, std::size_t bytes) {
  if (link.full()) {
    const auto start = Clock::now();
    link.wait_for_room();
    report_.wait_s += std::chrono::duration<double>(Clock::now() - start).count();
  }
  link.send(half, bytes);
  ++report_.messages;
  report_.sent_bytes += bytes;
}

// Runs this PE's layers on the chunk in `half`, in place, and passes it on.
void Engine::State::process_chunk(std::byte* half) {
  const MessageHeader header = header_of(half);
  const auto tokens = static_cast<std::size_t>(header.tokens);
  computing([&] { stage_.layers(hidden(half, tokens), header.position); });
  if (mine_.has_output && comm_.rank() != 0)
    for (const Token token : token_ids(half, tokens)) sampler_.accept(token);
  forward(half);
}

// To the next stage, or from the last one to where the output is.
void Engine::State::forward(std::byte* half) {
  const MessageHeader header = header_of(half);
  if (next_) {
    if (header.drained) next_->drained();
    send(*next_, half, half_.hidden + static_cast<std::size_t>(header.tokens) * width() * sizeof(float));
  } else if (header.kind == MessageKind::chunk && header.wants_next && comm_.rank() != 0) {
    deliver(half);
  }
}

// The last stage's answer to PE 0: the token where this PE has the output, else the hidden state.
void Engine::State::deliver(std::byte* half) {
  const MessageHeader header = header_of(half);
  const auto last = static_cast<std::size_t>(header.tokens - 1);
  const std::span<float> state = hidden(half, last + 1).subspan(last * width());
  MessageHeader answer;
  answers_->drained();  // PE 0 took the answer before, or it would not have asked again
  if (mine_.has_output) {
    answer.kind = MessageKind::token;
    answer.sampled = sample(state, header.position + header.tokens);
    send(*answers_, reinterpret_cast<const std::byte*>(&answer), sizeof answer);
  } else {
    answer.tokens = 1;
    answer.position = header.position + header.tokens - 1;
    std::memcpy(buffer_.data(), &answer, sizeof answer);
    std::ranges::copy(state, hidden(buffer_.data(), 1).begin());
    send(*answers_, buffer_.data(), half_.hidden + width() * sizeof(float));
  }
}

Token Engine::State::sample(std::span<const float> state, std::int64_t next_position) {
  return computing([&] {
    stage_.logits(state, logits_);
    return sampler_.sample(logits_, next_position);
  });
}

// PE 0: the answer to the chunk that was just fed.
Token Engine::State::collect(std::int64_t next_position) {
  if (!next_) {
    const auto tokens = static_cast<std::size_t>(header_of(buffer_.data()).tokens);
    return sample(hidden(buffer_.data(), tokens).subspan((tokens - 1) * width()), next_position);
  }
  std::byte* half = receive(*answers_, false);
  drained_ = true;
  const MessageHeader header = header_of(half);
  if (header.kind == MessageKind::token) return header.sampled;
  return sample(hidden(half, 1), next_position);
}

void Engine::State::check_tokens(std::span<const Token> tokens) const {
  if (tokens.empty()) fail(ErrorCode::invalid_argument, "nothing to feed to the model");
  for (const Token token : tokens)
    if (token < 0 || token >= plan_.config.vocabulary)
      fail(ErrorCode::invalid_argument,
           fmt::format("token {} is outside the vocabulary of {}", token, plan_.config.vocabulary));
  if (std::ssize(tokens) > context() - position_)
    fail(ErrorCode::out_of_memory,
         fmt::format("{} tokens do not fit: the context has {} positions and {} are taken", tokens.size(),
                     context(), position_));
}

Token Engine::State::feed(std::span<const Token> tokens, const std::function<bool()>& stop) {
  check_tokens(tokens);
  bool first = true;
  while (!tokens.empty()) {
    if (!first && stop && stop()) return no_token;
    const std::size_t count = std::min(tokens.size(), chunk());
    MessageHeader header;
    header.tokens = static_cast<std::int32_t>(count);
    header.position = position_;
    header.wants_next = count == tokens.size();
    header.followed = count < tokens.size();
    header.drained = std::exchange(drained_, false);
    header.begins = first && count > 1;
    std::memcpy(buffer_.data(), &header, sizeof header);
    std::ranges::copy(tokens.first(count), token_ids(buffer_.data(), count).begin());
    if (mine_.has_output)
      for (const Token token : tokens.first(count)) sampler_.accept(token);
    computing([&] { stage_.embed(tokens.first(count), hidden(buffer_.data(), count)); });
    computing([&] { stage_.layers(hidden(buffer_.data(), count), position_); });
    forward(buffer_.data());
    position_ += static_cast<std::int64_t>(count);
    tokens = tokens.subspan(count);
    first = false;
  }
  return collect(position_);
}

void Engine::State::truncate(std::int64_t length) {
  if (length < 0 || length > position_)
    fail(ErrorCode::invalid_argument, fmt::format("cannot truncate {} positions to {}", position_, length));
  MessageHeader header;
  header.kind = MessageKind::truncate;
  header.position = length;
  header.followed = header.begins = 1;
  header.drained = std::exchange(drained_, false);
  std::memcpy(buffer_.data(), &header, sizeof header);
  forget(length);
  position_ = length;
  forward(buffer_.data());
}

void Engine::State::stop() {
  MessageHeader header;
  header.kind = MessageKind::stop;
  header.begins = 1;
  header.drained = drained_;
  std::memcpy(buffer_.data(), &header, sizeof header);
  forward(buffer_.data());
  for (int pe = 1; pe < comm_.size(); ++pe) stop_.signal(pe, 1);
}

void Engine::State::serve() {
  if (!previous_) return stop_.wait_forever(0, 1);  // not in the pipeline
  for (;;) {
    std::byte* half = receive(*previous_, true);
    const MessageHeader header = header_of(half);
    switch (header.kind) {
      case MessageKind::chunk: process_chunk(half); break;
      case MessageKind::truncate:
        forget(header.position);
        forward(half);
        break;
      case MessageKind::stop: return forward(half);
      case MessageKind::token:
        fail(ErrorCode::communication, "a sampled token came to a PE that does not drive");
    }
    // After the chunk was put on its way: it was worked on in place.
    if (header.followed) previous_->acknowledge();
  }
}

std::vector<PeReport> Engine::State::reports() {
  for (const std::shared_ptr<Link>& link : {previous_, next_, answers_})
    if (link) link->flush();
  stop_.flush();
  struct Wire {
    std::int32_t numbers[6];
    std::uint64_t memory, sent, messages;
    double compute, wait;
  };
  const PeReport& r = report_;
  const Wire wire{{r.pe, r.layer_begin, r.layer_end, r.has_embedding, r.has_output, r.idle},
                  r.memory_bytes,
                  r.sent_bytes,
                  r.messages,
                  r.compute_s,
                  r.wait_s};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(&wire);
  const std::vector<std::uint8_t> all = comm_.all_gather(std::span<const std::uint8_t>(bytes, sizeof wire));
  std::vector<PeReport> reports;
  for (int pe = 0; comm_.rank() == 0 && pe < comm_.size(); ++pe) {
    Wire w;
    std::memcpy(&w, all.data() + static_cast<std::size_t>(pe) * sizeof w, sizeof w);
    reports.push_back({.pe = w.numbers[0],
                       .layer_begin = w.numbers[1],
                       .layer_end = w.numbers[2],
                       .has_embedding = w.numbers[3],
                       .has_output = w.numbers[4],
                       .idle = w.numbers[5],
                       .memory_bytes = w.memory,
                       .compute_s = w.compute,
                       .wait_s = w.wait,
                       .sent_bytes = w.sent,
                       .messages = w.messages,
                       .host = comm_.host(pe)});
  }
  return reports;
}

Engine::Engine(const comm::Communicator& communicator, const Plan& plan, const Weights& weights,
               ThreadTeam& team, const tensor::KernelSet& kernels, const SamplerOptions& sampling)
    : state_(std::make_unique<State>(communicator, plan, weights, team, kernels, sampling)) {}
Engine::~Engine() = default;

Token Engine::feed(std::span<const Token> tokens, const std::function<bool()>& stop) {
  return state_->feed(tokens, stop);
}
std::int64_t Engine::position() const { return state_->position(); }
std::int64_t Engine::context() const { return state_->context(); }
void Engine::truncate(std::int64_t length) { state_->truncate(length); }
void Engine::stop() { state_->stop(); }
void Engine::serve() { state_->serve(); }
std::vector<PeReport> Engine::reports() { return state_->reports(); }
std::span<const float> Engine::last_logits() const { return state_->last_logits(); }

}  // namespace shoal::infer
