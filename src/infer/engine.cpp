// SPDX-License-Identifier: Apache-2.0
#include "shoal/infer/engine.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

std::size_t Engine::symmetric_bytes(const Plan& plan) {
  const auto pes = static_cast<int>(plan.pes.size());
  const std::size_t data = segment_bytes(plan.options.chunk_tokens, plan.config.width);
  return comm::SegmentMemory::footprint(pes, data) + comm::SegmentMemory::footprint(pes, 0);
}

class Engine::State {
 public:
  State(const comm::Communicator& communicator, const Plan& plan, const Weights& weights, ThreadTeam& team,
        const tensor::KernelSet& kernels, const SamplerOptions& sampling)
      : comm_(communicator),
        plan_(plan),
        mine_(plan.pes.at(static_cast<std::size_t>(communicator.rank()))),
        half_(plan.options.chunk_tokens, plan.config.width),
        segments_(comm_, 2 * half_.bytes),
        credits_(comm_, 0),
        kv_(plan.config, mine_.layers(), plan.options.context, plan.options.kv_format),
        stage_(plan.config, weights, kv_, kernels, team, plan.options.chunk_tokens),
        sampler_(sampling),
        buffer_(half_.bytes),
        sent_(plan.pes.size()),
        taken_(plan.pes.size()),
        received_(plan.pes.size()) {
    if (mine_.has_output) logits_.resize(static_cast<std::size_t>(plan.config.vocabulary));
    const auto place = std::find(plan.pipeline.begin(), plan.pipeline.end(), comm_.rank());
    if (place != plan.pipeline.end()) {
      if (place != plan.pipeline.begin()) previous_ = *std::prev(place);
      if (std::next(place) != plan.pipeline.end()) next_ = *std::next(place);
    }
    report_.pe = comm_.rank();
    report_.layer_begin = static_cast<std::int32_t>(mine_.layer_begin);
    report_.layer_end = static_cast<std::int32_t>(mine_.layer_end);
    report_.has_embedding = mine_.has_embedding;
    report_.has_output = mine_.has_output;
    report_.idle = mine_.idle();
    report_.memory_bytes = weights.memory.size() + kv_.bytes() + stage_.scratch_bytes() + mine_.segment_bytes;
  }

  // The driver's side.
  Token feed(std::span<const Token> tokens);
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
  std::byte* receive(int peer, bool forever);
  void send(int peer, const std::byte* half, std::size_t bytes);
  void forward(std::byte* half);
  Token sample(std::span<const float> hidden, std::int64_t next_position);
  void deliver(std::byte* half);
  Token collect(std::int64_t next_position);
  void process_chunk(std::byte* half);

  comm::Communicator comm_;
  const Plan& plan_;
  const PePlan& mine_;
  HalfLayout half_;
  comm::SymmetricSegments<std::byte> segments_;
  comm::SymmetricSegments<std::byte> credits_;  // signals alone: chunks that have been taken
  KvCache kv_;
  Stage stage_;
  Sampler sampler_;
  std::vector<float> logits_;
  std::vector<std::byte> buffer_;       // PE 0 makes its chunks here, in the form of a half
  std::optional<int> previous_, next_;  // neighbours in the pipeline
  std::int64_t position_ = 0;
  bool drained_ = true;  // PE 0: an answer has come round since the last message was sent
  // Messages so far: to each peer, of these surely taken by it, and from each peer.
  std::vector<std::uint64_t> sent_, taken_, received_;
  PeReport report_;
};

// The text from `length` on. (The cache of a PE without layers stays empty.)
void Engine::State::forget(std::int64_t length) {
  if (mine_.layers() > 0) kv_.truncate(length);
  if (mine_.has_output) sampler_.truncate(length);
}

// Waits for the next message of `peer` and returns the half of its segment that holds it.
std::byte* Engine::State::receive(int peer, bool forever) {
  std::uint64_t& count = received_[static_cast<std::size_t>(peer)];
  const auto start = Clock::now();
  if (forever)
    segments_.wait_forever(peer, count + 1);
  else
    segments_.wait(peer, count + 1);
  std::byte* half = segments_.from(peer).data() + count % 2 * half_.bytes;
  ++count;
  const MessageHeader header = header_of(half);
  if (!header.begins) report_.wait_s += std::chrono::duration<double>(Clock::now() - start).count();
  return half;
}

// Puts the first `bytes` of a half into the segment at `peer`, as soon as that half is free there.
void Engine::State::send(int peer, const std::byte* half, std::size_t bytes) {
  const auto at = static_cast<std::size_t>(peer);
  if (sent_[at] >= taken_[at] + 2) {
    const auto start = Clock::now();
    credits_.wait(peer, sent_[at] - 1);
    report_.wait_s += std::chrono::duration<double>(Clock::now() - start).count();
    taken_[at] = sent_[at] - 1;
  }
  segments_.put(peer, sent_[at] % 2 * half_.bytes, View<const std::byte>(half, bytes), sent_[at] + 1);
  ++sent_[at];
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
    if (header.drained) taken_[static_cast<std::size_t>(*next_)] = sent_[static_cast<std::size_t>(*next_)];
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
  taken_[0] = sent_[0];  // PE 0 took the answer before, or it would not have asked again
  if (mine_.has_output) {
    answer.kind = MessageKind::token;
    answer.sampled = sample(state, header.position + header.tokens);
    send(0, reinterpret_cast<const std::byte*>(&answer), sizeof answer);
  } else {
    answer.tokens = 1;
    answer.position = header.position + header.tokens - 1;
    std::memcpy(buffer_.data(), &answer, sizeof answer);
    std::ranges::copy(state, hidden(buffer_.data(), 1).begin());
    send(0, buffer_.data(), half_.hidden + width() * sizeof(float));
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
  std::byte* half = receive(plan_.pipeline.back(), false);
  drained_ = true;
  const MessageHeader header = header_of(half);
  if (header.kind == MessageKind::token) return header.sampled;
  return sample(hidden(half, 1), next_position);
}

Token Engine::State::feed(std::span<const Token> tokens) {
  if (tokens.empty()) fail(ErrorCode::invalid_argument, "nothing to feed to the model");
  if (static_cast<std::int64_t>(tokens.size()) > context() - position_)
    fail(ErrorCode::out_of_memory,
         fmt::format("{} tokens do not fit: the context has {} positions and {} are taken", tokens.size(),
                     context(), position_));
  bool first = true;
  while (!tokens.empty()) {
    const std::size_t count = std::min(tokens.size(), chunk());
    MessageHeader header;
    header.tokens = static_cast<std::int32_t>(count);
    header.position = position_;
    header.wants_next = count == tokens.size();
    header.followed = count < tokens.size();
    header.drained = first && drained_;
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
  drained_ = false;
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
  for (const PePlan& pe : plan_.pes)
    if (pe.pe != 0 && std::ranges::find(plan_.pipeline, pe.pe) == plan_.pipeline.end())
      send(pe.pe, buffer_.data(), sizeof header);
}

void Engine::State::serve() {
  const int from = previous_.value_or(0);
  for (;;) {
    std::byte* half = receive(from, true);
    const MessageHeader header = header_of(half);
    switch (header.kind) {
      case MessageKind::chunk: process_chunk(half); break;
      case MessageKind::truncate:
        forget(header.position);
        forward(half);
        break;
      case MessageKind::stop: forward(half); return;
      case MessageKind::token:
        fail(ErrorCode::communication, "a sampled token came to a PE that does not drive");
    }
    // After the chunk was put on its way: it was worked on in place.
    if (header.followed) credits_.signal(from, received_[static_cast<std::size_t>(from)]);
  }
}

std::vector<PeReport> Engine::State::reports() {
  segments_.flush();
  credits_.flush();
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

Token Engine::feed(std::span<const Token> tokens) { return state_->feed(tokens); }
std::int64_t Engine::position() const { return state_->position(); }
std::int64_t Engine::context() const { return state_->context(); }
void Engine::truncate(std::int64_t length) { state_->truncate(length); }
void Engine::stop() { state_->stop(); }
void Engine::serve() { state_->serve(); }
std::vector<PeReport> Engine::reports() { return state_->reports(); }
std::span<const float> Engine::last_logits() const { return state_->last_logits(); }

}  // namespace shoal::infer
