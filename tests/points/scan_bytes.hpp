// Scan files made in memory, by code that shares nothing with the readers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <zlib.h>

#include <pumice/core/half.hpp>
#include <pumice/core/random.hpp>

namespace pumice::test {

using Row = std::array<float, 4>;   // x y z intensity

/// Points in the order a scanner sees them: round and round, ranges that change slowly.
inline std::vector<Row> scan_rows(std::int64_t count, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<Row> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const double angle = 0.01 * static_cast<double>(i);
    const double range = 20.0 + 10.0 * std::sin(0.3 * angle) + random.uniform(-0.01, 0.01);
    rows.push_back({static_cast<float>(range * std::cos(angle)),
                    static_cast<float>(range * std::sin(angle)),
                    static_cast<float>(-1.7 + 0.001 * static_cast<double>(i % 1000)),
                    static_cast<float>(random.uniform())});
  }
  return rows;
}

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <class T> void append(std::string& bytes, T value, bool big_endian = false) {
  char raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof value);
  if (big_endian) std::reverse(raw, raw + sizeof value);
  bytes.append(raw, sizeof value);
}

/// Converts a float to T: Half rounds, the others cast.
template <class T> T element(float value) {
  if constexpr (std::is_same_v<T, Half>)
    return to_half(value);
  else
    return static_cast<T>(value);
}

/// Rows of `columns` values of type T: x y z intensity, then 0.
template <class T> std::string raw_bytes(const std::vector<Row>& rows, std::size_t columns) {
  std::string bytes;
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < columns; ++c)
      append(bytes, element<T>(c < 4 ? row[c] : 0.0f));
  }
  return bytes;
}

/// Text that reads back to the same float.
inline std::string text_of(float value) {
  std::ostringstream text;
  text.precision(9);
  text << value;
  return text.str();
}

inline std::string pcd_header(std::size_t points, std::string_view data) {
  std::ostringstream text;
  text << "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\nFIELDS x y z intensity\n"
       << "SIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\nWIDTH " << points << "\nHEIGHT 1\n"
       << "VIEWPOINT 0 0 0 1 0 0 0\nPOINTS " << points << "\nDATA " << data << "\n";
  return text.str();
}

/// LZF of `in`: runs of one repeated byte become copies, the rest literals.
inline std::string lzf_bytes(std::string_view in) {
  std::string out;
  std::size_t at = 0;
  std::string literals;
  const auto flush = [&] {
    for (std::size_t i = 0; i < literals.size(); i += 32) {
      const std::size_t length = std::min<std::size_t>(32, literals.size() - i);
      out += static_cast<char>(length - 1);
      out += literals.substr(i, length);
    }
    literals.clear();
  };
  while (at < in.size()) {
    std::size_t run = 0;
    while (at > 0 && at + run < in.size() && in[at + run] == in[at - 1] && run < 264)
      ++run;
    if (run < 3) {
      literals += in[at++];
      continue;
    }
    flush();
    const std::size_t length = run - 2;
    if (length < 7) {
      out += static_cast<char>(length << 5);
    } else {
      out += static_cast<char>(7 << 5);
      out += static_cast<char>(length - 7);
    }
    out += '\0';   // one byte back
    at += run;
  }
  flush();
  return out;
}

inline std::string pcd_ascii(const std::vector<Row>& rows) {
  std::string bytes = pcd_header(rows.size(), "ascii");
  for (const Row& row : rows) {
    for (std::size_t c = 0; c < 4; ++c)
      bytes += text_of(row[c]) + (c < 3 ? " " : "\n");
  }
  return bytes;
}

inline std::string pcd_binary(const std::vector<Row>& rows) {
  return pcd_header(rows.size(), "binary") + raw_bytes<float>(rows, 4);
}

inline std::string pcd_compressed(const std::vector<Row>& rows) {
  std::string columns;
  for (std::size_t c = 0; c < 4; ++c) {
    for (const Row& row : rows)
      append(columns, row[c]);
  }
  const std::string packed = lzf_bytes(columns);
  std::string bytes = pcd_header(rows.size(), "binary_compressed");
  append(bytes, static_cast<std::uint32_t>(packed.size()));
  append(bytes, static_cast<std::uint32_t>(columns.size()));
  return bytes + packed;
}

enum class PlyStorage { ascii, little, big };

/// Vertices with double x, an unused colour and a face list behind them, as meshing tools write.
inline std::string ply_bytes(const std::vector<Row>& rows, PlyStorage storage) {
  static constexpr const char* kNames[] = {"ascii", "binary_little_endian", "binary_big_endian"};
  std::ostringstream header;
  header << "ply\nformat " << kNames[static_cast<int>(storage)] << " 1.0\ncomment made by a test\n"
         << "element sensor 2\nproperty float yaw\nelement vertex " << rows.size()
         << "\nproperty double x\nproperty float y\nproperty float z\nproperty uchar red\n"
         << "property float intensity\nelement face 1\n"
         << "property list uchar int vertex_indices\nend_header\n";
  std::string bytes = header.str();
  if (storage == PlyStorage::ascii) {
    bytes += "0.5\n1.5\n";
    for (const Row& row : rows) {
      bytes += text_of(row[0]) + " " + text_of(row[1]) + " " + text_of(row[2]) + " 255 " +
               text_of(row[3]) + "\n";
    }
    return bytes + "3 0 0 0\n";
  }
  const bool big = storage == PlyStorage::big;
  append(bytes, 0.5f, big);
  append(bytes, 1.5f, big);
  for (const Row& row : rows) {
    append(bytes, static_cast<double>(row[0]), big);
    append(bytes, row[1], big);
    append(bytes, row[2], big);
    append(bytes, std::uint8_t{255});
    append(bytes, row[3], big);
  }
  append(bytes, std::uint8_t{1});
  append(bytes, std::int32_t{0}, big);
  return bytes;
}

struct NpyStyle {
  std::string descr = "<f4";
  bool fortran = false;
  int version = 1;
};

/// An array [rows, columns] of T, which must be what `style.descr` says.
template <class T>
std::string npy_bytes(const std::vector<Row>& rows, std::size_t columns,
                      const NpyStyle& style = {}) {
  std::string dictionary =
      "{'descr': '" + style.descr + "', 'fortran_order': " + (style.fortran ? "True" : "False") +
      ", 'shape': (" + std::to_string(rows.size()) + ", " + std::to_string(columns) + "), }\n";
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(style.version);
  bytes += '\0';
  if (style.version == 1) {
    append(bytes, static_cast<std::uint16_t>(dictionary.size()));
  } else {
    append(bytes, static_cast<std::uint32_t>(dictionary.size()));
  }
  bytes += dictionary;
  const bool big = style.descr[0] == '>';
  const auto put = [&](std::size_t r, std::size_t c) {
    append(bytes, element<T>(c < 4 ? rows[r][c] : 0.0f), big);
  };
  if (style.fortran) {
    for (std::size_t c = 0; c < columns; ++c) {
      for (std::size_t r = 0; r < rows.size(); ++r)
        put(r, c);
    }
  } else {
    for (std::size_t r = 0; r < rows.size(); ++r) {
      for (std::size_t c = 0; c < columns; ++c)
        put(r, c);
    }
  }
  return bytes;
}

struct ZipPart {
  std::string name;
  std::string data;
  bool deflated = false;
  bool zip64 = false;   // sizes in an extra field, as NumPy writes them
};

inline std::string deflate_bytes(const std::string& data) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()) + 16, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string zip_bytes(const std::vector<ZipPart>& parts) {
  std::string bytes;
  std::string directory;
  for (const ZipPart& part : parts) {
    const std::string packed = part.deflated ? deflate_bytes(part.data) : part.data;
    const auto crc = static_cast<std::uint32_t>(
        crc32_z(0, reinterpret_cast<const Bytef*>(part.data.data()), part.data.size()));
    const auto method = static_cast<std::uint16_t>(part.deflated ? 8 : 0);
    const std::uint32_t shown_packed =
        part.zip64 ? 0xffffffffu : static_cast<std::uint32_t>(packed.size());
    const std::uint32_t shown_size =
        part.zip64 ? 0xffffffffu : static_cast<std::uint32_t>(part.data.size());
    std::string extra;
    if (part.zip64) {
      append(extra, std::uint16_t{1});
      append(extra, std::uint16_t{16});
      append(extra, static_cast<std::uint64_t>(part.data.size()));
      append(extra, static_cast<std::uint64_t>(packed.size()));
    }
    const auto offset = static_cast<std::uint32_t>(bytes.size());
    std::string common;   // what the local and the directory header share
    append(common, std::uint16_t{20});
    append(common, std::uint16_t{0});
    append(common, method);
    append(common, std::uint32_t{0});
    append(common, crc);
    append(common, shown_packed);
    append(common, shown_size);
    append(common, static_cast<std::uint16_t>(part.name.size()));
    append(common, static_cast<std::uint16_t>(extra.size()));
    bytes += "PK\x03\x04" + common + part.name + extra + packed;
    directory += "PK\x01\x02";
    append(directory, std::uint16_t{20});
    directory += common;
    append(directory, std::uint16_t{0});
    append(directory, std::uint16_t{0});
    append(directory, std::uint16_t{0});
    append(directory, std::uint32_t{0});
    append(directory, offset);
    directory += part.name + extra;
  }
  const auto start = static_cast<std::uint32_t>(bytes.size());
  bytes += directory + "PK\x05\x06";
  append(bytes, std::uint32_t{0});
  append(bytes, static_cast<std::uint16_t>(parts.size()));
  append(bytes, static_cast<std::uint16_t>(parts.size()));
  append(bytes, static_cast<std::uint32_t>(directory.size()));
  append(bytes, start);
  append(bytes, std::uint16_t{0});
  return bytes;
}

}   // namespace pumice::test
