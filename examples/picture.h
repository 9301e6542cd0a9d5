// SPDX-License-Identifier: Apache-2.0
// Pictures of results: images and curves side by side in a PNG file. No axes, no text.
#pragma once

#include <string>
#include <variant>
#include <vector>

namespace examples {

enum class Colours {
  grey,       // black (low) to white (high)
  diverging,  // blue, white, red; zero is white
  ranks,      // one colour for each whole number
};

/// values[row][column], rows downwards, in C order.
struct Image {
  int rows = 0, columns = 0;
  std::vector<double> values{};
  Colours colours = Colours::grey;
  /// Ends of the colour scale; equal: from the values.
  double low = 0, high = 0;
};

/// Each line over the width of the panel; all on one scale. Blue, orange, green, ...; `reference` is grey.
struct Curves {
  std::vector<std::vector<double>> lines;
  std::vector<double> reference{};
};

using Panel = std::variant<Image, Curves>;

/// From left to right, equally wide. Throws shoal::Error where the file cannot be written.
void write_picture(const std::string& path, const std::vector<Panel>& panels);

/// [rows, columns] turned into [columns, rows].
std::vector<double> transposed(const std::vector<double>& values, int rows, int columns);

}  // namespace examples
