// What options are made of: CLI11 without what prints help and reads files, which takes 2.6 s more
// a file. main.cpp has all of CLI11, and so what the linker needs of it.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Validators.hpp>
#if __has_include(<CLI/ExtraValidators.hpp>)   // has IsMember in releases after 2.1
#include <CLI/ExtraValidators.hpp>
#endif
