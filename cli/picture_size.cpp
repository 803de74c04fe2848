// Reads and checks `--size`; what a picture can be is checked where it is drawn.
#include "picture_size.hpp"

#include <CLI/App.hpp>

#include <pumice/core/error.hpp>

#include "arguments.hpp"

namespace pumice::cli {

void PictureSize::add_to(CLI::App& command) {
  option_ = take_numbers(
                command.add_option("--size", pixels_, "Width and height of the picture in pixels"),
                "--size 1600 900")
                ->expected(2)
                ->capture_default_str();
}

void PictureSize::check(const std::filesystem::path& picture) const {
  PUMICE_EXPECTS(option_ == nullptr || option_->count() == 0 || !picture.empty(),
                 "--size is that of a --picture, and none is asked for; leave it out");
}

void PictureSize::set(PictureOptions& options) const {
  options.width = pixels_[0];
  options.height = pixels_[1];
}

}   // namespace pumice::cli
