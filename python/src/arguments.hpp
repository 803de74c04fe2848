// Functions of the extension, bound so that an argument that does not fit is a sentence which names
// it, and no list of all the types that the function takes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <nanobind/nanobind.h>

namespace pumice::python {

namespace nb = nanobind;

/// An argument as it was given, and what became of it.
template <class T> struct Given {
  nb::detail::make_caster<T> caster;
  nb::handle source;
  bool fits = false;
};

struct Argument {
  const char* name;
  bool takes_none = false;
};

/// UserError: "stride = [4611686018427387904]: give whole numbers from …".
[[noreturn]] void refuse_argument(const char* name, nb::handle value, const std::string& wanted);

template <class T> struct IsOptional : std::false_type {};
template <class T> struct IsOptional<std::optional<T>> : std::true_type {};

/// "a map, as pumice.ops.submanifold_map makes": what an object of the extension is for a user.
std::string described_object(const std::string& type);

/// " from -2^31 to 2^31 - 1": what numbers a type holds, for a number that it does not hold. Where
/// something else was given, a user need not know; then empty, or " of at least 0".
template <class Integer> std::string bounds_after(nb::handle given) {
  using Limits = std::numeric_limits<Integer>;
  const std::string end = "2^" + std::to_string(Limits::digits);
  const bool holds_numbers = PyLong_Check(given.ptr()) || PyList_Check(given.ptr());
  if (!holds_numbers) return Limits::is_signed ? "" : " of at least 0";
  return " from " + (Limits::is_signed ? "-" + end : std::string("0")) + " to " + end + " - 1";
}

/// What an argument of this type is, for the sentence that refuses `given`.
template <class T> std::string wanted(nb::handle given) {
  using Plain = nb::detail::intrinsic_t<T>;
  if constexpr (IsOptional<Plain>::value) {
    return wanted<typename Plain::value_type>(given) + ", or None";
  } else if constexpr (std::is_same_v<Plain, bool>) {
    return "True or False";
  } else if constexpr (std::is_integral_v<Plain>) {
    return "a whole number" + bounds_after<Plain>(given);
  } else if constexpr (std::is_floating_point_v<Plain>) {
    return "a number";
  } else if constexpr (std::is_same_v<Plain, std::string>) {
    return "a str";
  } else if constexpr (std::is_same_v<Plain, std::filesystem::path>) {
    return "a path";
  } else if constexpr (std::is_same_v<Plain, std::vector<std::int32_t>>) {
    return "whole numbers" + bounds_after<std::int32_t>(given);
  } else if constexpr (requires { std::tuple_size<Plain>::value; }) {
    return std::to_string(std::tuple_size_v<Plain>) + " numbers";
  } else if constexpr (nb::detail::is_base_caster_v<nb::detail::make_caster<T>>) {
    return described_object(nb::str(nb::type<Plain>().attr("__name__")).c_str());
  } else {
    return "a tensor";
  }
}

template <class T> void expect_fitting(const Given<T>& given, const Argument& argument) {
  const bool takes_none = argument.takes_none || IsOptional<nb::detail::intrinsic_t<T>>::value;
  if (given.fits && (takes_none || !given.source.is_none())) return;
  refuse_argument(argument.name, given.source, wanted<T>(given.source));
}

/// `function` with arguments that are looked at under these names.
template <class Return, class... Arguments>
auto by_name(Return (*function)(Arguments...),
             const std::array<Argument, sizeof...(Arguments)>& names) {
  return [function, names](Given<Arguments>&... given) -> Return {
    std::size_t next = 0;
    (expect_fitting(given, names[next++]), ...);
    return function(given.caster.operator nb::detail::cast_t<Arguments>()...);
  };
}

namespace detail {

template <class Return, class... Arguments>
std::integral_constant<std::size_t, sizeof...(Arguments)> counted(Return (*)(Arguments...));

template <std::uint32_t Flags, bool Locked>
void add_name(Argument*& next, const nb::arg_t<Flags, Locked>& argument) {
  *next++ = {argument.name_, (Flags & nb::detail::cast_flags::accepts_none) != 0};
}
inline void add_name(Argument*&, const char*) {}

/// None is told apart by expect_fitting.
template <std::uint32_t Flags, bool Locked> auto extra(const nb::arg_t<Flags, Locked>& argument) {
  return argument.none();
}
inline const char* extra(const char* text) {
  return text;
}

}   // namespace detail

/// InternalError where the module has something of this name: it would be replaced, or become one
/// of two functions of that name, without a word.
void expect_new_name(const nb::module_& module, const char* name);

/// Adds functions of Python's own interface, up to one without a name.
void add_functions(nb::module_& module, PyMethodDef* functions);

/// module.def(name, function, extras...), with arguments that are looked at by their names.
template <class Function, class... Extra>
void define(nb::module_& module, const char* name, Function function, const Extra&... extras) {
  std::array<Argument, decltype(detail::counted(+function))::value> names{};
  expect_new_name(module, name);
  [[maybe_unused]] Argument* next = names.data();   // unused where there are no extras
  (detail::add_name(next, extras), ...);
  module.def(name, by_name(+function, names), detail::extra(extras)...);
}

}   // namespace pumice::python

namespace nanobind::detail {

/// Takes anything: whether it fits is looked at where its name is known.
template <class T> struct type_caster<pumice::python::Given<T>> {
  using Value = pumice::python::Given<T>;
  static constexpr auto Name = make_caster<remove_opt_mono_t<intrinsic_t<T>>>::Name;
  template <class> using Cast = Value&;
  template <class> static constexpr bool can_cast() { return true; }

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    value.source = source;
    value.fits = value.caster.from_python(source, flags | none_disallowed_flag<T>, cleanup);
    return true;
  }
  explicit operator Value&() { return value; }

  Value value;
};

}   // namespace nanobind::detail
