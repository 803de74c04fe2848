// The classes of SemanticKITTI that the simulator makes.
#pragma once

#include <cstdint>

namespace pumice::simulation {

inline constexpr std::int32_t kCar = 10;
inline constexpr std::int32_t kBicycle = 11;
inline constexpr std::int32_t kBus = 13;
inline constexpr std::int32_t kTruck = 18;
inline constexpr std::int32_t kPerson = 30;
inline constexpr std::int32_t kRoad = 40;
inline constexpr std::int32_t kParking = 44;
inline constexpr std::int32_t kSidewalk = 48;
inline constexpr std::int32_t kBuilding = 50;
inline constexpr std::int32_t kFence = 51;
inline constexpr std::int32_t kLaneMarking = 60;
inline constexpr std::int32_t kVegetation = 70;
inline constexpr std::int32_t kTrunk = 71;
inline constexpr std::int32_t kTerrain = 72;
inline constexpr std::int32_t kPole = 80;
inline constexpr std::int32_t kTrafficSign = 81;
inline constexpr std::int32_t kOtherObject = 99;
inline constexpr std::int32_t kMovingCar = 252;
inline constexpr std::int32_t kMovingPerson = 254;
inline constexpr std::int32_t kMovingBus = 257;
inline constexpr std::int32_t kMovingTruck = 258;

}   // namespace pumice::simulation
