// SPDX-License-Identifier: Apache-2.0
// Pictures of results: images and curves side by side in a PNG file, with titles and the ends of their axes.
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

/// Its name and unit, and the values at its ends. Without a label it is not shown.
struct Axis {
  std::string label{};
  double first = 0, last = 0;
};

/// values[row][column], rows downwards, in C order.
struct Image {
  int rows = 0, columns = 0;
  std::vector<double> values{};
  Colours colours = Colours::grey;
  /// Ends of the colour scale; equal: from the values.
  double low = 0, high = 0;
  std::string title{};
  Axis down{}, right{};
};

/// Each line over the width of the panel; all on one scale. Blue, orange, green, ...; `reference` is grey.
struct Curves {
  std::vector<std::vector<double>> lines;
  std::vector<double> reference{};
  std::string title{};
  std::vector<std::string> names{};  // of the lines
  std::string reference_name{};
  std::string up{};  // what the lines' values are
  Axis right{};
};

using Panel = std::variant<Image, Curves>;

/// From left to right, equally wide. Throws shoal::Error where the file cannot be written.
void write_picture(const std::string& path, const std::vector<Panel>& panels);

/// [rows, columns] turned into [columns, rows].
std::vector<double> transposed(const std::vector<double>& values, int rows, int columns);

}  // namespace examples
