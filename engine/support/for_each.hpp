// SPDX-License-Identifier: Apache-2.0
// A list that a macro takes once and uses several times: as members, as names.
//
//   #define BERTCL_NAME(item) #item,
//   constexpr const char* names[] = {BERTCL_FOR_EACH(BERTCL_NAME, x, y)};  // {"x", "y",}
#pragma once

/// M(item) for each item, at most 85. An item of several parts is in parentheses; M passes them on
/// as arguments: #define M(item) M_PARTS item.
#define BERTCL_FOR_EACH(M, ...) __VA_OPT__(BERTCL_RESCAN(BERTCL_FOR_EACH_ITEM(M, __VA_ARGS__)))

// Each item names the next call without making it, as a macro is not expanded inside of itself;
// each further scan of the text makes one (David Mazieres, "Recursive macros with C++20
// __VA_OPT__", 2021).
#define BERTCL_FOR_EACH_ITEM(M, item, ...) \
  M(item) __VA_OPT__(BERTCL_FOR_EACH_NEXT BERTCL_PARENTHESES(M, __VA_ARGS__))
#define BERTCL_FOR_EACH_NEXT() BERTCL_FOR_EACH_ITEM
#define BERTCL_PARENTHESES ()
#define BERTCL_RESCAN(...) \
  BERTCL_RESCAN_21(BERTCL_RESCAN_21(BERTCL_RESCAN_21(BERTCL_RESCAN_21(__VA_ARGS__))))
#define BERTCL_RESCAN_21(...) \
  BERTCL_RESCAN_5(BERTCL_RESCAN_5(BERTCL_RESCAN_5(BERTCL_RESCAN_5(__VA_ARGS__))))
#define BERTCL_RESCAN_5(...) \
  BERTCL_RESCAN_1(BERTCL_RESCAN_1(BERTCL_RESCAN_1(BERTCL_RESCAN_1(__VA_ARGS__))))
#define BERTCL_RESCAN_1(...) __VA_ARGS__
