// SPDX-License-Identifier: Apache-2.0
// The split patterns of the known pre-tokenizers, matched with PCRE2.
#define PCRE2_CODE_UNIT_WIDTH 8
#include "infer/pre_tokenizer.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <limits>

#include "infer/utf8.h"
#include "shoal/base/error.h"

namespace shoal::infer {
namespace {

// White space and its opposite as the trainers of the vocabularies meant them (the Unicode property
// White_Space). PCRE2's own \s also has U+180E, which Unicode took off the list in 2013.
#define SHOAL_SPACES \
  "\\x09-\\x0d\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define SHOAL_SPACE "[" SHOAL_SPACES "]"
#define SHOAL_NOT_SPACE "[^" SHOAL_SPACES "]"

// White space before a word leaves its last character to the word.
#define SHOAL_SPACE_RUNS SHOAL_SPACE "+(?!" SHOAL_NOT_SPACE ")|" SHOAL_SPACE "++"

// Repetitions are possessive wherever what follows cannot match what they took: same result, no backtracking.
constexpr const char* gpt2_words =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}++| ?\\p{N}++| ?[^" SHOAL_SPACES "\\p{L}\\p{N}]++|" SHOAL_SPACE_RUNS;

#define SHOAL_CASELESS_WORDS(digits)                                                         \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" digits "| ?[^" SHOAL_SPACES \
  "\\p{L}\\p{N}]++[\\r\\n]*+|" SHOAL_SPACE "*[\\r\\n]+|" SHOAL_SPACE_RUNS

// Letters that have a case, as deepseek-llm lists them (an older Unicode's Lu, Ll and Lt).
constexpr const char* deepseek_letters = SHOAL_SPACE
    "?["
    "A-Za-z\\x{00b5}\\x{00c0}-\\x{00d6}\\x{00d8}-\\x{00f6}\\x{00f8}-\\x{01ba}\\x{01bc}-\\x{01bf}"
    "\\x{01c4}-\\x{0293}\\x{0295}-\\x{02af}\\x{0370}-\\x{0373}\\x{0376}\\x{0377}\\x{037b}-\\x{037d}"
    "\\x{037f}\\x{0386}\\x{0388}-\\x{038a}\\x{038c}\\x{038e}-\\x{03a1}\\x{03a3}-\\x{03f5}"
    "\\x{03f7}-\\x{0481}\\x{048a}-\\x{052f}\\x{0531}-\\x{0556}\\x{10a0}-\\x{10c5}\\x{13a0}-\\x{13f5}"
    "\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}"
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}"
    "\\x{1f50}-\\x{1f57}\\x{1f59}\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}"
    "\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}\\x{1fd0}-\\x{1fd3}"
    "\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}"
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}\\x{2128}\\x{212a}-\\x{212d}"
    "\\x{212f}-\\x{2134}\\x{2139}\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}-\\x{2184}"
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}\\x{2cf3}\\x{a640}-\\x{a66d}"
    "\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}"
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}"
    "\\x{104b0}-\\x{104d3}\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}"
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}]++";

// Signs of ASCII and their full-width forms, quotation marks, and CJK stops.
constexpr const char* deepseek_signs =
    SHOAL_SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}\\x{2018}-\\x{201f}\\x{3000}-\\x{3002}]++";
constexpr const char* deepseek_cjk = "[\\x{4e00}-\\x{9fa5}\\x{0800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]++";

// The last white space of a piece. Written so that a run is looked at once, wherever a search begins.
constexpr const char* trailing_space = "(?<!" SHOAL_SPACE ")" SHOAL_SPACE "++\\z";

struct Rules {
  std::array<std::string_view, 4> names;
  std::array<const char*, 6> patterns;
  bool whole_words_first = false;
  bool adds_bos_by_default = false;
};

// Names are those that the converters of llama.cpp write; names of one row share one behaviour.
constexpr std::array<Rules, 6> known_rules = {{
    {{"gpt-2", "phi-2", "olmo", "mpt"}, {gpt2_words}},
    {{"smollm", "refact", "starcoder", "command-r"}, {"\\p{N}", gpt2_words}},
    {{"llama-bpe", "llama3", "llama-v3", "falcon3"}, {SHOAL_CASELESS_WORDS("\\p{N}{1,3}+")}, true, true},
    {{"qwen2", "deepseek-r1-qwen", "stablelm2"}, {SHOAL_CASELESS_WORDS("\\p{N}")}},
    {{"deepseek-llm"},
     {"[\\r\\n]", deepseek_letters, deepseek_signs, trailing_space, deepseek_cjk, "\\p{N}"}},
    {{"default"}, {"[\\p{P}$+<=>^~|]++", gpt2_words, "\\p{N}++", "[0-9][0-9][0-9]"}},
}};

#undef SHOAL_CASELESS_WORDS
#undef SHOAL_SPACE_RUNS
#undef SHOAL_NOT_SPACE
#undef SHOAL_SPACE
#undef SHOAL_SPACES

const Rules& find_rules(std::string_view name, const std::string& source) {
  std::string known;
  for (const Rules& rules : known_rules) {
    for (const std::string_view candidate : rules.names) {
      if (candidate.empty()) continue;
      if (candidate == name) return rules;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", candidate);
    }
  }
  fail(ErrorCode::unsupported,
       fmt::format("{}: tokenizer.ggml.pre is '{}', a pre-tokenizer that is not known here "
                   "(known: {})",
                   source, name, known));
}

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatchContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};
struct FreeMatchData {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
};

// What one thread needs while matching. No limit stops a match half-way: the patterns do not nest, so
// work and memory are bounded by the text.
class Matcher {
 public:
  Matcher() : context_(pcre2_match_context_create(nullptr)), data_(pcre2_match_data_create(1, nullptr)) {
    if (!context_ || !data_) fail(ErrorCode::out_of_memory, "no memory for splitting a text into words");
    constexpr auto unlimited = std::numeric_limits<std::uint32_t>::max();
    pcre2_set_match_limit(context_.get(), unlimited);
    pcre2_set_depth_limit(context_.get(), unlimited);
    pcre2_set_heap_limit(context_.get(), unlimited);
  }

  /// The first match in `text` at or after `from`: begin and end, or {npos, npos}.
  std::array<std::size_t, 2> find(const pcre2_code* code, std::string_view text, std::size_t from) {
    int result = match(code, text, from, PCRE2_NO_UTF_CHECK);
    if (result == PCRE2_ERROR_JIT_STACKLIMIT)
      result = match(code, text, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (result == PCRE2_ERROR_NOMATCH) return {std::string_view::npos, std::string_view::npos};
    if (result < 0) {
      fail(ErrorCode::invalid_argument, fmt::format("splitting a text of {} bytes into words failed: {}",
                                                    text.size(), pcre2_message(result)));
    }
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data_.get());
    return {bounds[0], bounds[1]};
  }

 private:
  int match(const pcre2_code* code, std::string_view text, std::size_t from, std::uint32_t options) {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, options,
                       data_.get(), context_.get());
  }

  std::unique_ptr<pcre2_match_context, FreeMatchContext> context_;
  std::unique_ptr<pcre2_match_data, FreeMatchData> data_;
};

// Bytes at the beginning of `text` that are valid UTF-8.
std::size_t valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Step::Kind::valid) break;
    at += step.length;
  }
  return at;
}

}  // namespace

struct PreTokenizer::Pattern {
  std::unique_ptr<pcre2_code, FreeCode> code;

  explicit Pattern(const char* text) {
    int error = 0;
    PCRE2_SIZE offset = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text), PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                             &error, &offset, nullptr));
    if (!code) {
      fail(ErrorCode::unsupported,
           fmt::format("this PCRE2 library does not accept the pattern {} (at {}: {})", text, offset,
                       pcre2_message(error)));
    }
    // Where there is no JIT, pcre2_match interprets: slower, the same result.
    pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  }

  void cut(std::string_view piece, Matcher& matcher, std::vector<std::string_view>& out) const {
    std::size_t at = 0;
    while (at < piece.size()) {
      const auto [begin, end] = matcher.find(code.get(), piece, at);
      if (begin == std::string_view::npos) break;
      if (begin > at) out.push_back(piece.substr(at, begin - at));
      out.push_back(piece.substr(begin, end - begin));
      at = end;
    }
    if (at < piece.size()) out.push_back(piece.substr(at));
  }
};

PreTokenizer::PreTokenizer(std::string_view name, const std::string& source) {
  const Rules& rules = find_rules(name, source);
  whole_words_first_ = rules.whole_words_first;
  adds_bos_by_default_ = rules.adds_bos_by_default;
  for (const char* pattern : rules.patterns) {
    if (pattern != nullptr) patterns_.emplace_back(pattern);
  }
}

PreTokenizer::~PreTokenizer() = default;
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> result, pieces, finer;
  Matcher matcher;
  while (!text.empty()) {
    const std::size_t valid = valid_prefix(text);
    if (valid > 0) {
      pieces.assign(1, text.substr(0, valid));
      for (const Pattern& pattern : patterns_) {
        finer.clear();
        for (const std::string_view piece : pieces) pattern.cut(piece, matcher, finer);
        pieces.swap(finer);
      }
      result.insert(result.end(), pieces.begin(), pieces.end());
      text.remove_prefix(valid);
    }
    if (!text.empty()) {
      const std::size_t length = utf8_step(text).length;
      result.push_back(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return result;
}

}  // namespace shoal::infer
