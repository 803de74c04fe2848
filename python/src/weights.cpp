// Files of weights, their cards, and text made fit for terminals: what Python shares with the
// program.
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/nn/model_card.hpp>

#include "core/printable.hpp"
#include "sites.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using Metadata = std::map<std::string, std::string>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Elements = std::tuple<std::string, std::string, std::vector<std::int64_t>, Bytes>;

void write(const std::filesystem::path& path, const std::vector<Elements>& tensors,
           const Metadata& metadata) {
  std::vector<NamedElements> elements;
  for (const auto& [name, type, shape, bytes] : tensors) {
    elements.push_back(
        {name, {type, shape, bytes.size()}, reinterpret_cast<const std::byte*>(bytes.data())});
  }
  const GilReleased released;
  write_stored_tensors(path, elements, metadata);
}

void write_bytes(const std::filesystem::path& path, const Bytes& bytes) {
  const std::span data(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  const GilReleased released;
  AtomicFile file(path);
  file.write(data);
  file.commit();
}

nb::dict card_of(const nn::ModelCard& card) {
  nb::dict result;
  result["network"] = card.network;
  result["in_channels"] = card.in_channels;
  result["outputs"] = card.outputs;
  result["widths"] = card.widths;
  result["voxel_size"] = card.voxel_size;
  result["classes"] = card.classes;
  result["labels"] = card.labels;
  result["colours"] = card.colours;
  if (card.relational) result["widths"] = card.relational->widths;
  return result;
}

/// As UTF-8; in the place of bytes that were none, as names of files may hold, those bytes.
std::string bytes_of(const nb::str& text) {
  const nb::bytes encoded(text.attr("encode")("utf-8", "surrogateescape"));
  return {encoded.c_str(), encoded.size()};
}

/// The text of an error, in which others' text may stand, as it is shown: by str() and therefore in
/// a traceback.
void show_printable(nb::handle type, Newlines newlines) {
  const auto shown = [newlines](nb::handle error) {
    const nb::object base = nb::borrow(PyExc_Exception);
    return printable_message(bytes_of(nb::str(base.attr("__str__")(error))), newlines);
  };
  nb::setattr(type, "__str__", nb::cpp_function(shown, nb::is_method()));
}

}   // namespace

void bind_weights(nb::module_& module) {
  nb::class_<SafetensorsFile>(
      module, "SafetensorsFile",
      "A safetensors file whose header has been checked; elements are read when asked for.")
      .def_static(
          "open", [](const std::filesystem::path& path) { return SafetensorsFile::open(path); },
          "path"_a)
      .def_prop_ro("name", &SafetensorsFile::name, "The file, as errors name it.")
      .def_prop_ro("names", &SafetensorsFile::names)
      .def_prop_ro("metadata", &SafetensorsFile::metadata)
      .def(
          "look",
          [](const SafetensorsFile& file, const std::string& name) {
            const StoredTensor found = file.stored(name);
            return std::tuple(std::string(found.type), found.shape);
          },
          "name"_a, "(type as \"F32\", shape) of a tensor.")
      .def(
          "read",
          [](const SafetensorsFile& file, const std::string& name, const Room& out) {
            const std::span room(reinterpret_cast<std::byte*>(out.data()), out.size());
            const GilReleased released;
            file.read(name, room);
          },
          "name"_a, "out"_a, "Fills `out`, uint8 of as many bytes as the elements take.")
      .def("card", [](const SafetensorsFile& file) { return card_of(nn::read_model_card(file)); })
      .def(
          "fitting_options",
          [](const SafetensorsFile& file) {
            const auto widths = nn::widths_in(file);
            return widths ? nn::options_for(*widths) : std::string();
          },
          "The options of `pumice run` that fit a MinkUNet42's tensors; empty for others.");
  module.def("write_safetensors", &write, "path"_a, "tensors"_a, "metadata"_a,
             "`tensors`: (name, type, shape, elements as uint8), written in this order.");
  module.def("write_file", &write_bytes, "path"_a, "bytes"_a,
             "Whole or not at all, of any number of threads and processes the last.");
  module.def(
      "read_card",
      [](const Metadata& metadata, const std::string& file) {
        return card_of(nn::read_model_card(metadata, file));
      },
      "metadata"_a, "file"_a, "What metadata says; `file` is for errors.");
  module.def("find_weights", &nn::find_weights, "given"_a,
             "The file of installed weights of that name, or what was given.");
  module.def(
      "printable",
      [](const nb::str& text, std::size_t most) { return printable(bytes_of(text), most); },
      "text"_a, "most"_a = 60, "One line that no terminal takes for a command.");
  module.def(
      "printable_path", [](const std::filesystem::path& path) { return printable_path(path); },
      "path"_a, "The same of the name of a file, of which both ends are kept.");
  show_printable(module.attr("UserError"), Newlines::escaped);
  // These may hold what a compiler printed, and the place of a mistake.
  show_printable(module.attr("Error"), Newlines::kept);
  show_printable(module.attr("InternalError"), Newlines::kept);
}

}   // namespace pumice::python
