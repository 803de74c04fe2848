"""Which names of other people's libraries a file uses without the header that declares them.

Headers that many files include are precompiled (cmake/precompiled.cmake), and the compiler then does not complain of a
missing include. So tools/check_layers.py looks: for whatever a file names of std or of LIBRARIES, it includes a header, by
itself or through headers of ours. A name of std that the table lacks is an error too: add it to its header's line. Not seen
are macros, names outside of namespaces, and which header of another library it is.
"""

import re

# A header of the standard library and what it declares, of what is used here and likely to be. A name may stand in several
# lines, also where only every known library declares it there (error_code in <filesystem>); one that ends in * begins others.
DECLARED = """
algorithm: adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if copy_n count count_if equal
  equal_range fill fill_n find find_if find_if_not for_each generate generate_n includes inplace_merge is_sorted
  iter_swap lexicographical_compare lower_bound max max_element merge min min_element minmax minmax_element mismatch
  next_permutation none_of nth_element partial_sort partition partition_point ranges::* remove remove_copy_if
  remove_if replace replace_if reverse reverse_copy rotate search set_difference set_intersection set_union shuffle
  sort stable_partition stable_sort swap_ranges transform unique upper_bound
any: any any_cast
array: array get to_array tuple_size tuple_size_v
atomic: atomic atomic_* memory_order*
bit: bit_cast bit_ceil bit_floor bit_width countl_zero countr_one countr_zero endian has_single_bit popcount rotl rotr
cctype: isalnum isalpha isdigit isspace isxdigit tolower toupper
charconv: chars_format from_chars from_chars_result to_chars
chrono: chrono chrono::* micro milli nano
cmath: abs acos asin atan atan2 cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs floor fma fmax fmin fmod
  frexp hypot ilogb isfinite isinf isnan ldexp lgamma llround log log10 log1p log2 lround modf nan nanf nearbyint
  nextafter pow remainder rint round scalbn signbit sin sinh sqrt tan tanh tgamma trunc
compare: partial_ordering strong_ordering weak_ordering
complex: complex
concepts: convertible_to floating_point integral invocable same_as signed_integral unsigned_integral
condition_variable: condition_variable condition_variable_any
csignal: raise signal
cstddef: byte max_align_t nullptr_t ptrdiff_t size_t to_integer
cstdint: int16_t int32_t int64_t int8_t intptr_t uint16_t uint32_t uint64_t uint8_t uintptr_t
cstdio: fclose ferror fflush fgets FILE fopen fprintf fputc fputs fread fseek ftell fwrite printf puts remove rename
  size_t snprintf
cstdlib: _Exit abort abs aligned_alloc atexit atoi exit free getenv malloc quick_exit realloc size_t strtod strtol
  strtoll strtoull system
cstring: memchr memcmp memcpy memmove memset size_t strchr strcmp strerror strlen strncmp strncpy strrchr strstr
ctime: clock clock_t gmtime localtime mktime size_t strftime time time_t
deque: deque erase erase_if
exception: current_exception exception exception_ptr make_exception_ptr rethrow_exception terminate
  uncaught_exceptions
execution: execution::*
filesystem: error_code filesystem filesystem::*
forward_list: forward_list
fstream: fstream ifstream ios ofstream streamsize
functional: bind cref divides equal_to function greater greater_equal hash invoke less less_equal logical_and minus
  multiplies not_fn plus ranges::greater ranges::less ref
future: async future future_status launch promise
initializer_list: initializer_list
iomanip: put_time setfill setprecision setw
ios: dec defaultfloat fixed hex ios ios_base oct scientific streamoff streamsize
iosfwd: ifstream istream ofstream ostream
iostream: cerr cin clog cout endl flush istream ostream
istream: istream ws
iterator: advance back_inserter begin cbegin cend data distance end forward_iterator_tag input_iterator_tag inserter
  istream_iterator istreambuf_iterator make_move_iterator move_iterator next ostream_iterator prev
  random_access_iterator_tag ranges::advance ranges::distance ranges::next ranges::prev rbegin rend reverse_iterator
  size ssize
limits: numeric_limits
list: list
locale: locale
map: erase_if less map multimap
memory: addressof align allocator assume_aligned const_pointer_cast construct_at default_delete destroy destroy_at
  dynamic_pointer_cast enable_shared_from_this make_shared make_unique owner_less shared_ptr static_pointer_cast
  to_address uninitialized_copy uninitialized_fill unique_ptr weak_ptr
mutex: adopt_lock call_once defer_lock lock lock_guard mutex once_flag recursive_mutex scoped_lock timed_mutex
  try_to_lock unique_lock
new: align_val_t bad_alloc hardware_destructive_interference_size launder nothrow
numbers: numbers numbers::*
numeric: accumulate adjacent_difference exclusive_scan gcd inclusive_scan inner_product iota lcm midpoint partial_sum
  reduce transform_reduce
optional: in_place make_optional nullopt nullopt_t optional
ostream: endl flush ostream
queue: priority_queue queue
random: bernoulli_distribution discrete_distribution exponential_distribution mt19937 mt19937_64 normal_distribution
  random_device seed_seq uniform_int_distribution uniform_real_distribution
ratio: giga kilo mega micro milli nano ratio
ranges: ranges::* views::*
regex: cmatch match_results regex regex_constants regex_constants::* regex_error regex_match regex_replace
  regex_search smatch sregex_iterator
set: erase_if less multiset set
shared_mutex: shared_lock shared_mutex
source_location: source_location
span: as_bytes as_writable_bytes dynamic_extent span
sstream: ios istringstream ostringstream stringstream
stack: stack
stdexcept: domain_error exception invalid_argument length_error logic_error out_of_range overflow_error range_error
  runtime_error
streambuf: streambuf
string: basic_string char_traits erase erase_if getline hash stod stof stoi stol stoll stoul stoull string
  string_literals string_literals::* to_string
string_view: basic_string_view hash string_view
system_error: errc error_code error_condition generic_category make_error_code make_error_condition system_category
  system_error
thread: jthread this_thread this_thread::* thread
tuple: apply forward_as_tuple get ignore make_from_tuple make_tuple tie tuple tuple_element tuple_element_t tuple_size
  tuple_size_v
type_traits: add_const_t bool_constant common_type_t conditional conditional_t decay_t enable_if_t false_type
  integral_constant invoke_result_t is_arithmetic_v is_base_of_v is_const_v is_constructible_v is_convertible_v
  is_copy_assignable_v is_copy_constructible_v is_default_constructible_v is_enum_v is_floating_point_v is_integral_v
  is_invocable_r_v is_invocable_v is_move_constructible_v is_nothrow_move_assignable_v is_nothrow_move_constructible_v
  is_pointer_v is_reference_v is_same is_same_v is_signed_v is_standard_layout_v is_trivially_copyable_v
  is_trivially_destructible_v is_unsigned_v is_void_v make_signed_t make_unsigned_t remove_const_t remove_cv_t
  remove_cvref_t remove_pointer_t remove_reference_t true_type type_identity type_identity_t underlying_type_t void_t
typeindex: type_index
typeinfo: bad_cast type_info
unordered_map: erase_if unordered_map unordered_multimap
unordered_set: erase_if unordered_multiset unordered_set
utility: as_const cmp_equal cmp_greater cmp_greater_equal cmp_less cmp_less_equal cmp_not_equal declval exchange
  forward get in_place in_range index_sequence index_sequence_for integer_sequence make_index_sequence
  make_integer_sequence make_pair move move_if_noexcept pair piecewise_construct ranges::move swap to_underlying
  tuple_size unreachable
variant: bad_variant_access get get_if holds_alternative in_place monostate variant variant_alternative_t visit
vector: erase erase_if vector
"""
# [iterator.range]: each of these headers declares the names of <iterator> that go over a range.
CONTAINERS = "array deque list map optional regex set span string string_view unordered_map unordered_set vector".split()
OF_RANGES = "begin cbegin cend crbegin crend data empty end rbegin rend size ssize".split()
# Namespaces of other libraries; their headers lie in folders of the same names, and any of them will do.
LIBRARIES = ("CLI", "fmt", "hwy", "nlohmann", "spdlog")

NAME = re.compile(r"(?<!\w)(?<!\w::)(std|" + "|".join(LIBRARIES) + r")::((?:[a-z_]+::)?\w+)")
NOT_CODE = re.compile(
    "|".join(
        [
            r"//[^\n]*",
            r"/\*.*?\*/",
            r'\bu?8?R"([^(\s]*)\(.*?\)\1"',
            r'"(?:\\.|[^"\\\n])*"',
            r"(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'",  # the ' of 1'000 begins no character
        ]
    ),
    re.DOTALL,
)


def read_table():
    """Of names, and of how names begin: the headers that declare them."""
    names, beginnings, header = {}, {}, None
    for line in DECLARED.strip().splitlines():
        if not line.startswith(" "):
            header, line = line.split(":", 1)
        for name in line.split():
            (beginnings if name.endswith("*") else names).setdefault(name.rstrip("*"), set()).add(header)
    for name in OF_RANGES:
        names.setdefault(name, set()).update(["iterator", *CONTAINERS])
    return names, beginnings


NAMES, BEGINNINGS = read_table()


def headers_of(name):
    """Those that declare `std::name`; none where the table lacks it. `string::npos` is declared where `string` is."""
    for known in (name, name.split("::")[0]):
        if known in NAMES:
            return NAMES[known]
        found = [headers for beginning, headers in BEGINNINGS.items() if known.startswith(beginning)]
        if found:
            return set().union(*found)
    return set()


def code_of(text):
    """Without comments, strings and characters, on the same lines."""
    return NOT_CODE.sub(lambda match: "\n" * match[0].count("\n"), text)


def used_in(text):
    """(line, namespace, name) of the first place of each name in code."""
    first = {}
    for match in NAME.finditer(text):
        first.setdefault((match[1], match[2]), text.count("\n", 0, match.start()) + 1)
    return [(line, *name) for name, line in first.items()]


def complaints(text, included):
    """(line, message) for what `text` names without a header of `included`, the names of all that it includes."""
    text = code_of(text)
    for line, namespace, name in used_in(text):
        if namespace != "std":
            is_declared_here = f"namespace {namespace} {{" in text
            if not is_declared_here and not any(header.startswith(f"{namespace}/") for header in included):
                yield line, f"{namespace}::{name} without a header of <{namespace}/>"
        elif not (headers := headers_of(name)):
            yield line, f"std::{name} is in no line of tools/std_names.py: add it to its header's line"
        elif not headers & included:
            yield line, f"std::{name} without <{'> or <'.join(sorted(headers))}>"
