// NumPy archives: a zip of .npy arrays, one of which holds the points.
#include <algorithm>
#include <string>

#include "points/text.hpp"
#include "points/zip.hpp"

namespace pumice::detail {
namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kMostListed = 20;   // names in an error message

std::string listed(const std::vector<ZipMember>& members) {
  std::string names;
  for (std::size_t i = 0; i < members.size() && i < kMostListed; ++i) {
    names += (i == 0 ? "" : ", ") + excerpt(members[i].name);
  }
  return members.size() > kMostListed ? names + ", …" : names;
}

const ZipMember& points_member(const std::vector<ZipMember>& members, std::string_view name) {
  PUMICE_EXPECTS(!members.empty(), name, ": holds no array");
  for (const std::string_view wanted : {"points.npy", "xyz.npy", "coords.npy"}) {
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const ZipMember& member) { return member.name == wanted; });
    if (found != members.end()) return *found;
  }
  PUMICE_EXPECTS(members.size() == 1 && members[0].name.ends_with(kEnding), name,
                 ": which array holds the points? It has ", listed(members),
                 "; name one points, xyz or coords");
  return members[0];
}

}   // namespace

PointCloud read_npz(Bytes bytes, std::string_view name) {
  const std::vector<ZipMember> members = list_members(bytes, name);
  const ZipMember& member = points_member(members, name);
  const Buffer<std::byte> array = read_member(bytes, member, name);
  return read_npy_points(array.span(), std::string(name) + "/" + excerpt(member.name));
}

}   // namespace pumice::detail
