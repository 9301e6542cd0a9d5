// SPDX-License-Identifier: Apache-2.0
// Typed lookups in the metadata of a GGUF file.
#include <algorithm>

#include <fmt/format.h>

#include "infer/gguf_names.h"
#include "shoal/base/error.h"
#include "shoal/infer/gguf.h"

namespace shoal::infer {
namespace {

std::string type_text(const GgufValue& value) {
  const auto* array = std::get_if<GgufArray>(&value.value);
  return array == nullptr ? to_string(value.type) : fmt::format("ARRAY of {}", to_string(array->type));
}

[[noreturn]] void wrong_type(const GgufMetadata& metadata, std::string_view key, const GgufValue& value,
                             std::string_view expected) {
  fail(ErrorCode::format, fmt::format("{}: key '{}' is of type {}, expected {}", metadata.source, key,
                                      type_text(value), expected));
}

[[noreturn]] void missing(const GgufMetadata& metadata, std::string_view key) {
  fail(ErrorCode::format, fmt::format("{}: key '{}' is missing", metadata.source, key));
}

std::int64_t checked_integer(const GgufMetadata& metadata, std::string_view key, const GgufValue& value) {
  const auto* number = std::get_if<std::int64_t>(&value.value);
  if (number == nullptr || value.type == GgufType::boolean) wrong_type(metadata, key, value, "an integer");
  if (value.type == GgufType::uint64 && *number < 0)
    fail(ErrorCode::format, fmt::format("{}: key '{}' is {}, too large for a signed 64-bit integer",
                                        metadata.source, key, static_cast<std::uint64_t>(*number)));
  return *number;
}

/// The values of an array of one kind: T is the vector type that GgufArray holds for it.
template <class T>
const T& array_values(const GgufMetadata& metadata, std::string_view key, std::string_view expected) {
  const GgufValue* value = metadata.find(key);
  if (value == nullptr) missing(metadata, key);
  const auto* array = std::get_if<GgufArray>(&value->value);
  const T* values = array == nullptr ? nullptr : std::get_if<T>(&array->values);
  if (values == nullptr) wrong_type(metadata, key, *value, expected);
  return *values;
}

}  // namespace

std::size_t GgufArray::size() const {
  return std::visit([](const auto& elements) { return elements.size(); }, values);
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto entry = std::ranges::find(entries, key, &GgufEntry::key);
  return entry == entries.end() ? nullptr : &entry->value;
}

std::int64_t GgufMetadata::integer(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(*this, key);
  return checked_integer(*this, key, *value);
}

std::int64_t GgufMetadata::integer_or(std::string_view key, std::int64_t fallback) const {
  return has(key) ? integer(key) : fallback;
}

double GgufMetadata::real(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(*this, key);
  const auto* number = std::get_if<double>(&value->value);
  if (number == nullptr) wrong_type(*this, key, *value, "a floating-point number");
  return *number;
}

double GgufMetadata::real_or(std::string_view key, double fallback) const {
  return has(key) ? real(key) : fallback;
}

bool GgufMetadata::boolean_or(std::string_view key, bool fallback) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return fallback;
  if (value->type != GgufType::boolean) wrong_type(*this, key, *value, "BOOL");
  return std::get<std::int64_t>(value->value) != 0;
}

const std::string& GgufMetadata::string(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) missing(*this, key);
  const auto* text = std::get_if<std::string>(&value->value);
  if (text == nullptr) wrong_type(*this, key, *value, "STRING");
  return *text;
}

std::string GgufMetadata::string_or(std::string_view key, std::string_view fallback) const {
  return has(key) ? string(key) : std::string(fallback);
}

const GgufArray* GgufMetadata::array(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return nullptr;
  const auto* array = std::get_if<GgufArray>(&value->value);
  if (array == nullptr) wrong_type(*this, key, *value, "ARRAY");
  return array;
}

const std::vector<std::string>& GgufMetadata::strings(std::string_view key) const {
  return array_values<std::vector<std::string>>(*this, key, "ARRAY of STRING");
}

std::vector<std::int64_t> GgufMetadata::integers_or_empty(std::string_view key) const {
  if (!has(key)) return {};
  const auto& values = array_values<std::vector<std::int64_t>>(*this, key, "ARRAY of integers");
  if (array(key)->type == GgufType::uint64 && std::ranges::any_of(values, [](auto v) { return v < 0; }))
    fail(ErrorCode::format,
         fmt::format("{}: array '{}' holds a value too large for a signed 64-bit integer", source, key));
  return values;
}

std::vector<double> GgufMetadata::reals_or_empty(std::string_view key) const {
  if (!has(key)) return {};
  return array_values<std::vector<double>>(*this, key, "ARRAY of floating-point numbers");
}

}  // namespace shoal::infer
