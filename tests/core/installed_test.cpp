// Where data that comes along is looked for.
#include "core/installed.hpp"

#include <gtest/gtest.h>

namespace pumice {
namespace {

TEST(InstalledPlaces, LieBesideTheProgramAndInItsInstallation) {
  const auto places = installed_places("kernels");
  ASSERT_EQ(places.size(), 4u);
  for (const auto& place : places) {
    EXPECT_TRUE(place.is_absolute()) << place;
    EXPECT_TRUE(place.string().ends_with("/pumice/kernels")) << place;
  }
  const auto above = [](const std::filesystem::path& place, int levels) {
    std::filesystem::path folder = place;
    for (int i = 0; i < levels; ++i)
      folder = folder.parent_path();
    return folder;
  };
  if (!PUMICE_SHARED_LIBRARY) {
    EXPECT_EQ(above(places[0], 2), std::filesystem::canonical("/proc/self/exe").parent_path());
  }
  EXPECT_EQ(above(places[0], 3), above(places[1], 2));
  EXPECT_EQ(places[2], above(places[1], 2) / "share" / "pumice" / "kernels");
  EXPECT_EQ(places[3], above(places[1], 3) / "share" / "pumice" / "kernels");
}

}   // namespace
}   // namespace pumice
