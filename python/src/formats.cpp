// Patterns that are cut into parts, and products over them.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>
#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/part_products.hpp>

#include "arguments.hpp"
#include "graphs.hpp"
#include "held_tensor.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using Numbers = std::vector<std::int64_t>;
using formats::EdgeTypes;

struct DecomposedHandle {
  std::shared_ptr<const Decomposed> parts;
};

/// The stream that its memory belongs to.
StreamView home_of(const DecomposedHandle& decomposed) {
  return decomposed.parts->stream();
}

DecomposedHandle share_parts(Decomposed made) {
  return {std::make_shared<const Decomposed>(std::move(made))};
}

EdgeTypes types_of(const Call& call, nb::handle types, std::int64_t count) {
  return {call.view(types, "types"), count};
}

/// `numbers`: the parameters of a format in the order of its function in C++.
DecomposedHandle cut(const GraphHandle& graph, const std::string& format, const Numbers& numbers,
                     nb::handle types, std::int64_t count) {
  using Make = Decomposed (*)(const CsrView&, const Numbers&, const EdgeTypes&, StreamView);
  static const std::map<std::string, Make> makers{
      {"identity",
       [](auto& of, auto&, auto&, auto stream) { return formats::identity(of, stream); }},
      {"dcsr", [](auto& of, auto&, auto&, auto stream) { return formats::dcsr(of, stream); }},
      {"padded_csr", [](auto& of, auto& with, auto&,
                        auto stream) { return formats::padded_csr(of, with.at(0), stream); }},
      {"ell", [](auto& of, auto& with, auto&,
                 auto stream) { return formats::ell(of, with.at(0), stream); }},
      {"hyb",
       [](auto& of, auto& with, auto& types, auto stream) {
         return formats::hyb(
             of, {.column_parts = with.at(0), .widths = Numbers(with.begin() + 1, with.end())},
             types, stream);
       }},
      {"bsr", [](auto& of, auto& with, auto&,
                 auto stream) { return formats::bsr(of, with.at(0), with.at(1), stream); }},
      {"dbsr", [](auto& of, auto& with, auto&,
                  auto stream) { return formats::dbsr(of, with.at(0), with.at(1), stream); }},
      {"sr_bcrs", [](auto& of, auto& with, auto&,
                     auto stream) { return formats::sr_bcrs(of, with.at(0), with.at(1), stream); }},
      {"csf",
       [](auto& of, auto&, auto& types, auto stream) { return formats::csf(of, types, stream); }},
  };
  const auto maker = makers.find(format);
  PUMICE_ENSURES(maker != makers.end(), "format ", format);
  const Call call(home_of(graph).device, home_of(graph));
  const EdgeTypes of = types_of(call, types, count);
  return share_parts(
      call.run([&] { return maker->second(graph.view(), numbers, of, call.stream()); }));
}

/// Five numbers for each part.
std::vector<PartShape> shapes_of(const Numbers& numbers) {
  std::vector<PartShape> shapes;
  for (std::size_t at = 0; at + 4 < numbers.size(); at += 5)
    shapes.push_back({.block_rows = numbers[at],
                      .block_columns = numbers[at + 1],
                      .width = numbers[at + 2],
                      .multiple = numbers[at + 3],
                      .all_rows = numbers[at + 4] != 0});
  return shapes;
}

/// `part`: int64 [entries] by the entries' places.
DecomposedHandle cut_by(const GraphHandle& graph, const Numbers& shapes, nb::handle part,
                        nb::handle types, std::int64_t count) {
  const Call call(home_of(graph).device, home_of(graph));
  const ConstTensorView of = call.view(part, "parts");
  const EdgeTypes kinds = types_of(call, types, count);
  return share_parts(call.run([&] {
    return formats::decompose(graph.view(), shapes_of(shapes), of, kinds, call.stream());
  }));
}

/// A list that stays the framework's.
Tensor held(nb::handle tensor, DType dtype, const char* name) {
  if (tensor.is_none()) return {};
  const ConstTensorView view = view_of(tensor, name, {});
  PUMICE_EXPECTS(view.dtype() == dtype && view.device().kind == DeviceKind::cpu, name, " is ",
                 name_of(view.dtype()), " on ", to_string(view.device()), ": give ", name_of(dtype),
                 " on the CPU");
  return hold(nb::borrow(tensor), view.shape(), dtype, {});
}

/// `lists`: (row, slot_begin, column, entry, type_begin) of each part.
DecomposedHandle take(const GraphHandle& graph, const Numbers& shapes, const nb::list& lists) {
  std::vector<Part> parts;
  std::size_t at = 0;
  const std::vector<PartShape> of = shapes_of(shapes);
  for (const nb::handle given : lists) {
    const auto part = nb::cast<nb::tuple>(given);
    parts.push_back({.shape = of.at(at++),
                     .row = held(part[0], DType::i32, "row"),
                     .slot_begin = held(part[1], DType::i64, "slot_begin"),
                     .column = held(part[2], DType::i32, "column"),
                     .entry = held(part[3], DType::i64, "entry"),
                     .type_begin = held(part[4], DType::i64, "type_begin")});
  }
  return share_parts(formats::decompose(graph.view(), std::move(parts)));
}

DecomposedHandle take_blocks(std::int64_t rows, std::int64_t columns, std::int64_t block_rows,
                             std::int64_t block_columns, nb::handle block_row_begin,
                             nb::handle block_column) {
  const Call call{Device{}};
  const ConstTensorView begin = call.view(block_row_begin, "block_row_begin");
  const ConstTensorView column = call.view(block_column, "block_column");
  return share_parts(call.run(
      [&] { return formats::blocks(rows, columns, block_rows, block_columns, begin, column); }));
}

DecomposedHandle take_mask(nb::handle mask, std::int64_t block_rows, std::int64_t block_columns) {
  const Call call{Device{}};
  const ConstTensorView of = call.view(mask, "mask");
  return share_parts(call.run([&] { return formats::block_mask(of, block_rows, block_columns); }));
}

/// (block rows, block columns, width, multiple, all rows, row, slot_begin, column, entry,
/// type_begin) of each part, which are its memory.
nb::list parts_of(const DecomposedHandle& decomposed) {
  const auto given = [](const Tensor& list) { return list.defined() ? share(list) : nb::none(); };
  nb::list made;
  for (const Part& part : decomposed.parts->parts()) {
    const PartShape& shape = part.shape;
    made.append(nb::make_tuple(shape.block_rows, shape.block_columns, shape.width, shape.multiple,
                               shape.all_rows, given(part.row), given(part.slot_begin),
                               given(part.column), given(part.entry), given(part.type_begin)));
  }
  return made;
}

GraphHandle graph_again(const DecomposedHandle& decomposed) {
  const StreamView home = home_of(decomposed);
  const Call call(home.device, home);
  return {
      std::make_shared<SharedGraph>(Graph(call.run([&] { return csr(*decomposed.parts); }), home))};
}

/// From one GPU to another by the host.
DecomposedHandle copied(const DecomposedHandle& decomposed, const std::string& device) {
  const Device target = parse_device(device);
  const StreamView home = home_of(decomposed);
  if (home.device.kind == DeviceKind::cpu) {
    const Call call(target);
    return share_parts(call.run([&] { return copy_to(call.stream(), *decomposed.parts); }));
  }
  const Call call(home.device, home);
  const DecomposedHandle here =
      share_parts(call.run([&] { return copy_to_host(*decomposed.parts, home); }));
  return target.kind == DeviceKind::cpu ? here : copied(here, device);
}

void check(const DecomposedHandle& decomposed) {
  const Call call(home_of(decomposed).device, home_of(decomposed));
  call.run([&] { validate(*decomposed.parts); });
}

nb::tuple multiply(const DecomposedHandle& decomposed, nb::handle values, nb::handle features,
                   const std::string& reduce) {
  const Call call(features, home_of(decomposed));
  const ConstTensorView x = call.view(features, "features");
  const ConstTensorView weights = call.view(values, "values");
  const EntryReduction reduction = reduction_of(reduce);
  FrameworkResults& results = call.results();
  const SpmmResult made = call.run([&] {
    return spmm(*decomposed.parts, weights, x, reduction, {.output = results, .source = results});
  });
  return nb::make_tuple(call.give(made.output),
                        made.source.defined() ? call.give(made.source) : nb::none());
}

nb::object multiply_dense(const DecomposedHandle& decomposed, nb::handle left, nb::handle right,
                          std::int64_t heads) {
  const Call call(left, home_of(decomposed));
  const ConstTensorView l = call.view(left, "left");
  const ConstTensorView r = call.view(right, "right");
  return call.give(call.run([&] { return sddmm(*decomposed.parts, l, r, heads, call.results()); }));
}

}   // namespace

void bind_formats(nb::module_& module) {
  nb::class_<DecomposedHandle>(module, "Decomposed", "A pattern cut into parts.")
      .def_prop_ro("rows", [](const DecomposedHandle& of) { return of.parts->rows(); })
      .def_prop_ro("columns", [](const DecomposedHandle& of) { return of.parts->columns(); })
      .def_prop_ro("entries", [](const DecomposedHandle& of) { return of.parts->entries(); })
      .def("parts", &parts_of,
           "Five numbers and five lists of each part; the lists are its memory.")
      .def("graph", &graph_again, "The pattern again.")
      .def_prop_ro("device",
                   [](const DecomposedHandle& of) { return to_string(home_of(of).device); })
      .def("validate", &check, "Raises UserError unless each entry has just one position.")
      .def("copy_to", by_name(&copied, {Argument{"self"}, Argument{"device"}}), "device"_a.none());
  define(module, "cut", &cut, "graph"_a, "format"_a, "numbers"_a, "types"_a.none(), "count"_a);
  define(module, "cut_by", &cut_by, "graph"_a, "shapes"_a, "parts"_a, "types"_a.none(), "count"_a);
  define(module, "take_parts", &take, "graph"_a, "shapes"_a, "lists"_a);
  define(module, "take_blocks", &take_blocks, "rows"_a, "columns"_a, "block_rows"_a,
         "block_columns"_a, "block_row_begin"_a, "block_column"_a);
  define(module, "take_mask", &take_mask, "mask"_a, "block_rows"_a, "block_columns"_a);
  define(module, "part_spmm", &multiply, "parts"_a, "values"_a.none(), "features"_a, "reduce"_a,
         "([rows, C], int64 [rows, C] entries that were picked, or None)");
  define(module, "part_sddmm", &multiply_dense, "parts"_a, "left"_a, "right"_a, "heads"_a,
         "[entries, heads]");
}

}   // namespace pumice::python
