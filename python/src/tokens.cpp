// Sites, maps and graphs inside tensors: what an operator of torch.library takes and a compiled
// graph can carry; and what a backward pass needs, which autograd then frees when it frees its
// tensors. A token is one int64 on the host; its memory owns the object, so the object lives as
// long as any tensor shares that memory, whatever the framework does with it. A copy of the number
// stands for the same object for as long as the original lives.
#include <memory>
#include <mutex>
#include <unordered_map>
#include <variant>

#include <nanobind/ndarray.h>
#include <pumice/core/error.hpp>

#include "arguments.hpp"
#include "framework_allocator.hpp"
#include "graphs.hpp"
#include "sites.hpp"
#include "tokens.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

/// Tensors of the framework, or None, whose extents nobody knows before an operator has run: inside
/// a graph they go from a product to its gradient as one token, which has its shape in any case.
class KeptTensors {
 public:
  explicit KeptTensors(nb::tuple tensors) : tensors_(tensors.release()) {}
  ~KeptTensors() {
    if (framework_is_closed()) return;
    const GilTaken gil;
    tensors_.dec_ref();
  }
  KeptTensors(const KeptTensors&) = delete;
  KeptTensors& operator=(const KeptTensors&) = delete;

  nb::tuple tensors() const { return nb::borrow<nb::tuple>(tensors_); }

 private:
  nb::handle tensors_;
};

using Object =
    std::variant<Sites, Map, GraphHandle, TypedRowsHandle, std::shared_ptr<const nn::ChainRecord>,
                 std::shared_ptr<const KeptTensors>>;

class Registry {
 public:
  std::int64_t add(const Object* object) {
    const std::lock_guard lock(mutex_);
    objects_.emplace(++last_, object);
    return last_;
  }
  void remove(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    objects_.erase(number);
  }
  Object find(std::int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(number);
    PUMICE_EXPECTS(found != objects_.end(), "token ", number,
                   " stands for no coordinates, map or graph that still exist: keep the sparse "
                   "tensor or graph that it came from, and do not compute with tokens");
    return *found->second;
  }

 private:
  std::mutex mutex_;
  // Far from small numbers, which a tensor made by mistake would hold.
  std::int64_t last_ = std::int64_t{0x70756d6963} << 20;
  std::unordered_map<std::int64_t, const Object*> objects_;
};

Registry& registry() {
  static Registry& the = *new Registry;
  return the;
}

struct Token {
  explicit Token(Object kept)
      : object(std::move(kept)), key(registry().add(&object)), number(key) {}
  ~Token() { registry().remove(key); }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;
  Object object;
  std::int64_t key;
  // The tensor's memory. A compiler of graphs may write another tensor there once it is dead.
  std::int64_t number;
};

nb::object make_token(Object object) {
  auto* token = new Token(std::move(object));
  const nb::capsule owner(token, [](void* data) noexcept { delete static_cast<Token*>(data); });
  const std::size_t extents[] = {1};
  return nb::cast(nb::ndarray<nb::pytorch, std::int64_t>(&token->number, 1, extents, owner));
}

Object find(nb::handle token) {
  const ConstTensorView number = view_of(token, "token", {});
  PUMICE_EXPECTS(number.dtype() == DType::i64 && number.elements() == 1,
                 "a token is one int64 on the CPU, made by Pumice");
  return registry().find(*number.data<std::int64_t>());
}

template <class Kind> Kind find_as(nb::handle token, const char* expected_kind) {
  Object object = find(token);
  auto* kind = std::get_if<Kind>(&object);
  PUMICE_EXPECTS(kind != nullptr, "a token of another kind; this operator takes one of ",
                 expected_kind);
  return std::move(*kind);
}

}   // namespace

nb::object token_of(std::shared_ptr<const nn::ChainRecord> record) {
  return make_token(std::move(record));
}

std::shared_ptr<const nn::ChainRecord> record_of(nb::handle token) {
  return find_as<std::shared_ptr<const nn::ChainRecord>>(token, "a backward pass");
}

void bind_tokens(nb::module_& module) {
  define(
      module, "sites_token", [](const Sites& sites) { return make_token(sites); }, "sites"_a);
  define(
      module, "map_token", [](const Map& map) { return make_token(map); }, "map"_a);
  define(
      module, "graph_token", [](const GraphHandle& graph) { return make_token(graph); }, "graph"_a);
  define(
      module, "graph_of", [](nb::handle token) { return find_as<GraphHandle>(token, "a graph"); },
      "token"_a);
  define(
      module, "typed_rows_token", [](const TypedRowsHandle& types) { return make_token(types); },
      "types"_a);
  define(
      module, "typed_rows_of",
      [](nb::handle token) { return find_as<TypedRowsHandle>(token, "types of rows"); }, "token"_a);
  define(
      module, "tensors_token",
      [](nb::tuple tensors) {
        return make_token(std::make_shared<const KeptTensors>(std::move(tensors)));
      },
      "tensors"_a, "Keeps tensors, or None, for as long as the token lives.");
  define(
      module, "tensors_of",
      [](nb::handle token) {
        return find_as<std::shared_ptr<const KeptTensors>>(token, "kept tensors")->tensors();
      },
      "token"_a);
  define(
      module, "sites_of", [](nb::handle token) { return find_as<Sites>(token, "sites"); },
      "token"_a);
  define(
      module, "map_of", [](nb::handle token) { return find_as<Map>(token, "a map"); }, "token"_a);
}

}   // namespace pumice::python
