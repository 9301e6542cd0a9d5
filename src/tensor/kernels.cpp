// SPDX-License-Identifier: Apache-2.0
// Which kernel sets this machine can run, and the public face (spans, checks, scratch memory) of each.
// This file is compiled for the baseline processor: it decides before any special instruction runs.
#include "shoal/tensor/kernels.h"

#include <fmt/format.h>
#if defined(SHOAL_X86_KERNELS)
#include <cpuid.h>
#endif

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "shoal/base/check.h"
#include "shoal/base/error.h"
#include "tensor/prepared.h"
#include "tensor/raw_kernels.h"

namespace shoal::tensor {
namespace {

std::int64_t prepared_bytes(Format format, std::int64_t columns) {
  (void)row_bytes(format, columns);  // rejects columns that are no whole blocks
  return (prepared_row_bytes(static_cast<int>(format), columns) + 63) / 64 * 64;
}

// Grows to the largest product of its thread; allocated in units of a cache line for the alignment.
std::uint8_t* scratch_of_this_thread(std::int64_t bytes) {
  struct alignas(64) Line {
    std::uint8_t bytes[64];
  };
  thread_local std::unique_ptr<Line[]> memory;
  thread_local std::int64_t lines = 0;
  const std::int64_t wanted = (bytes + 63) / 64;
  if (wanted > lines) {
    memory.reset();
    lines = 0;
    memory = std::make_unique_for_overwrite<Line[]>(static_cast<std::size_t>(wanted));
    lines = wanted;
  }
  return wanted == 0 ? nullptr : memory.get()->bytes;
}

// A KernelSet's functions have no context argument, so the set is a template argument: one wrapper each.
template <const RawKernels& raw>
struct Face {
  static void prepare(Format format, std::span<const float> x, std::byte* out) {
    raw.prepare(static_cast<int>(format), x.data(), static_cast<std::int64_t>(x.size()),
                reinterpret_cast<std::uint8_t*>(out));
  }

  static void multiply(const Matrix& w, const std::byte* x, std::int64_t tokens, std::int64_t row_begin,
                       std::int64_t row_end, float* y, std::int64_t y_stride) {
    SHOAL_CHECK(light, 0 <= row_begin && row_begin <= row_end && row_end <= w.rows);
    SHOAL_CHECK(light, tokens >= 0 && (tokens <= 1 || y_stride >= w.rows));
    if (tokens == 0 || row_begin == row_end) return;
    raw.multiply[static_cast<int>(w.format)](
        {.rows = reinterpret_cast<const std::uint8_t*>(w.data),
         .row_bytes = row_bytes(w.format, w.columns),
         .row_count = w.rows,
         .columns = w.columns,
         .x = reinterpret_cast<const std::uint8_t*>(x),
         .prepared_bytes = prepared_bytes(w.format, w.columns),
         .tokens = tokens,
         .row_begin = row_begin,
         .row_end = row_end,
         .y = y,
         .y_stride = y_stride,
         .scratch = scratch_of_this_thread(raw.scratch_bytes(w.columns, tokens))});
  }

  static void rms_norm(std::span<const float> x, std::span<const float> weight, float epsilon,
                       std::span<float> out) {
    SHOAL_CHECK(light, x.size() == weight.size() && x.size() == out.size());
    raw.rms_norm(x.data(), weight.data(), epsilon, out.data(), static_cast<std::int64_t>(x.size()));
  }

  static void silu_multiply(std::span<float> gate, std::span<const float> up) {
    SHOAL_CHECK(light, gate.size() == up.size());
    raw.silu_multiply(gate.data(), up.data(), static_cast<std::int64_t>(gate.size()));
  }

  static void add(std::span<float> x, std::span<const float> y) {
    SHOAL_CHECK(light, x.size() == y.size());
    raw.add(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  }

  static void softmax(std::span<float> x) { raw.softmax(x.data(), static_cast<std::int64_t>(x.size())); }
};

template <const RawKernels& raw>
KernelSet dress(std::string_view name) {
  using F = Face<raw>;
  return {name,      prepared_bytes, F::prepare,  F::multiply, F::rms_norm,        F::silu_multiply,
          F::add,    F::softmax,     raw.dot_f32, raw.dot_f16, raw.accumulate_f32, raw.accumulate_f16,
          raw.to_f16};
}

#if defined(SHOAL_X86_KERNELS)
// Clang 14 does not know this feature by name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

// Slowest first.
std::vector<KernelSet> sets_of_this_machine() {
  std::vector<KernelSet> sets = {dress<scalar_kernels>("scalar")};
#if defined(SHOAL_X86_KERNELS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2) sets.push_back(dress<avx2_kernels>("avx2"));
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni"))
    sets.push_back(dress<avx512_kernels>("avx512"));
#endif
  return sets;
}

}  // namespace

std::span<const KernelSet* const> available_kernels() {
  static const std::vector<KernelSet> sets = sets_of_this_machine();
  static const std::vector<const KernelSet*> pointers = [] {
    std::vector<const KernelSet*> result;
    for (const KernelSet& set : sets) result.push_back(&set);
    return result;
  }();
  return pointers;
}

const KernelSet* find_kernels(std::string_view name) {
  for (const KernelSet* set : available_kernels())
    if (set->name == name) return set;
  return nullptr;
}

const KernelSet& default_kernels() {
  const char* wanted = std::getenv("SHOAL_KERNELS");
  if (wanted == nullptr || *wanted == '\0') return *available_kernels().back();
  if (const KernelSet* set = find_kernels(wanted)) return *set;
  std::string names;
  for (const KernelSet* set : available_kernels()) names.append(names.empty() ? "" : ", ").append(set->name);
  fail(ErrorCode::invalid_argument,
       fmt::format("SHOAL_KERNELS: this machine has no kernel set '{}'; choose one of: {}", wanted, names));
}

}  // namespace shoal::tensor
