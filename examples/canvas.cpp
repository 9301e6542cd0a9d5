// SPDX-License-Identifier: Apache-2.0
#include "canvas.h"

#include <png.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "shoal/base/error.h"

namespace examples {
namespace {

// The characters from 32 (space) to 126, of 5 x 9 dots each: bit 5 row + column.
constexpr std::array<std::uint64_t, 95> glyphs{
    0x000000000000, 0x000000000000, 0x000000000000, 0x000000000000, 0x000000000000, 0x000672222273,
    0x000000000000, 0x000000000084, 0x000208210888, 0x000088842082, 0x000000000000, 0x000109f21000,
    0x001108000000, 0x000000070000, 0x000100000000, 0x000042222210, 0x0003a33ae62e, 0x0003884210c4,
    0x0007c226422e, 0x0003e107420f, 0x000211f4a988, 0x0003a3083c3f, 0x0003a317844c, 0x00008442221f,
    0x0003a317462e, 0x0001910f462e, 0x000100001000, 0x000000000000, 0x000000000000, 0x00003e0f8000,
    0x000000000000, 0x000000000000, 0x000000000000, 0x000463f8c544, 0x0003e317c62f, 0x0003a210862e,
    0x0003e318c62f, 0x0007c217843f, 0x00004217843f, 0x0007a31e862e, 0x0004631fc631, 0x00038842108e,
    0x00019284211c, 0x000452519531, 0x0007c2108421, 0x0004631ad771, 0x0004739ace71, 0x0003a318c62e,
    0x00004217c62f, 0x00059358c62e, 0x00045257c62f, 0x0003e107043e, 0x00010842109f, 0x0003a318c631,
    0x000114a8c631, 0x0004775ac631, 0x000462a22a31, 0x000108422a31, 0x0007c222221f, 0x000000000000,
    0x000000000000, 0x000000000000, 0x000000004544, 0x000000000000, 0x000000000000, 0x0007a3e83800,
    0x0003e318bc21, 0x00078210f800, 0x0007a318fa10, 0x000383f8b800, 0x000084213c4c, 0x0e87a318f800,
    0x00046318bc21, 0x000388421804, 0x064a10843008, 0x00024a32a421, 0x000388421086, 0x00056b5aac00,
    0x00046318bc00, 0x0003a318b800, 0x010be318bc00, 0x1087a318f800, 0x00004219b400, 0x0003e0e0f800,
    0x000304213c42, 0x0005b318c400, 0x000114a8c400, 0x0002ab58c400, 0x000454454400, 0x0e87a318c400,
    0x0007c4447c00, 0x000000000000, 0x002108421084, 0x000000000000, 0x000000000000,
};
constexpr int dot = 2, columns = 5, rows = 9, advance = columns + 1;  // dot: in pixels

// Calls at(column, row) for each pixel of `text`, from its upper left corner.
template <class At>
void for_each_pixel(const std::string& text, const At& at) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int code = text[i] - 32;
    if (code < 0 || code >= static_cast<int>(glyphs.size())) continue;
    for (int bit = 0; bit < columns * rows; ++bit)
      if ((glyphs[static_cast<std::size_t>(code)] >> bit & 1) != 0)
        for (int pixel = 0; pixel < dot * dot; ++pixel)
          at((static_cast<int>(i) * advance + bit % columns) * dot + pixel % dot,
             bit / columns * dot + pixel / dot);
  }
}

}  // namespace

Colour mix(const Colour& a, const Colour& b, double share) {
  const auto between = [&](double from, double to) { return from + share * (to - from); };
  return {between(a.red, b.red), between(a.green, b.green), between(a.blue, b.blue)};
}

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)) {}

void Canvas::mark(int column, int row, const Colour& colour, double share) {
  if (column < 0 || column >= width_ || row < 0 || row >= height_) return;
  Colour& pixel = pixels_[static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
                          static_cast<std::size_t>(column)];
  pixel = mix(pixel, colour, share);
}

int Canvas::text_width(const std::string& text) {
  return text.empty() ? 0 : (static_cast<int>(text.size()) * advance - 1) * dot;
}

void Canvas::write(int left, int top, const std::string& text, const Colour& colour) {
  for_each_pixel(text, [&](int column, int row) { mark(left + column, top + row, colour); });
}
void Canvas::write_upwards(int left, int bottom, const std::string& text, const Colour& colour) {
  for_each_pixel(text, [&](int column, int row) { mark(left + row, bottom - column, colour); });
}

void Canvas::save(const std::string& path) const {
  std::vector<std::uint8_t> bytes;
  for (const Colour& pixel : pixels_)
    for (const double part : {pixel.red, pixel.green, pixel.blue})
      bytes.push_back(static_cast<std::uint8_t>(std::lround(255 * std::clamp(part, 0.0, 1.0))));
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width_);
  image.height = static_cast<png_uint_32>(height_);
  image.format = PNG_FORMAT_RGB;
  if (!png_image_write_to_file(&image, path.c_str(), 0, bytes.data(), 0, nullptr))
    shoal::fail(shoal::ErrorCode::io, fmt::format("cannot write the picture {}: {}", path, image.message));
}

}  // namespace examples
