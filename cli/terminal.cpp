// Tables, progress bars, and numbers in words.
#include "terminal.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "core/printable.hpp"

namespace pumice::cli {
namespace {

constexpr std::size_t kWidest = 400;   // of a cell: wide enough for every sentence of `doctor`

/// Columns a UTF-8 text takes: continuation bytes take none.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t to, bool left) {
  const std::string space(to - width(text), ' ');
  return left ? text + space : space + text;
}

}   // namespace

Table::Table(std::vector<std::string> headings) : headings_(std::move(headings)) {
  for (std::string& heading : headings_) {
    left_.push_back(heading.starts_with('<'));
    if (left_.back()) heading.erase(0, 1);
  }
}

void Table::add(std::vector<std::string> cells) {
  cells.resize(headings_.size());
  for (std::string& cell : cells)
    cell = printable(cell, kWidest);
  rows_.push_back(std::move(cells));
}

void Table::add_rule() {
  rows_.emplace_back();
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < headings_.size(); ++column) {
    widths.push_back(width(headings_[column]));
    for (const auto& row : rows_) {
      if (!row.empty()) widths[column] = std::max(widths[column], width(row[column]));
    }
  }
  std::size_t total = 2 * (widths.size() - 1);
  for (const std::size_t column : widths)
    total += column;

  std::string result;
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      if (column > 0) text += "  ";
      text += padded(cells[column], widths[column], left_[column]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    result += text + "\n";
  };
  line(headings_);
  result += std::string(total, '-') + "\n";
  for (const auto& row : rows_) {
    if (row.empty())
      result += std::string(total, '-') + "\n";
    else
      line(row);
  }
  return result;
}

ProgressBar::ProgressBar(std::string what, Elsewhere elsewhere)
    : what_(std::move(what)),
      active_(isatty(STDERR_FILENO) == 1),
      in_lines_(!active_ && elsewhere == Elsewhere::lines) {}

ProgressBar::~ProgressBar() {
  clear();
}

void ProgressBar::clear() {
  if (!active_ || last_permille_ < 0) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  last_permille_ = -1;
}

void ProgressBar::show_line(int done, int count) {
  constexpr std::chrono::seconds kPause{10};
  const auto now = std::chrono::steady_clock::now();
  if (last_line_ && now - *last_line_ < kPause) return;
  last_line_ = now;
  fmt::print(stderr, "{}: {} of {}\n", what_, with_commas(done), with_commas(count));
  std::fflush(stderr);
}

void ProgressBar::show(int done, int count, double part) {
  if (in_lines_ && count > 0) show_line(done, count);
  if (!active_ || count <= 0) return;
  const int permille = std::clamp(static_cast<int>((done + part) * 1000 / count), 0, 1000);
  if (permille == last_permille_) return;
  last_permille_ = permille;
  constexpr int kWidth = 40;
  const int filled = permille * kWidth / 1000;
  fmt::print(stderr, "\r{} [{:#<{}}{:.<{}}] {}/{}", what_, "", filled, "", kWidth - filled, done,
             count);
  std::fflush(stderr);
}

std::string with_commas(long long value) {
  std::string digits = std::to_string(value < 0 ? -value : value);
  for (std::size_t place = digits.size(); place > 3; place -= 3)
    digits.insert(place - 3, 1, ',');
  if (value < 0) digits.insert(digits.begin(), '-');
  return digits;
}

std::string counted(long long number, std::string_view noun, std::string_view plural) {
  std::string text = with_commas(number) + ' ';
  text += number == 1 || plural.empty() ? noun : plural;
  if (number != 1 && plural.empty()) text += 's';
  return text;
}

}   // namespace pumice::cli
