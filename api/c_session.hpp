// SPDX-License-Identifier: Apache-2.0
// What a handle of a session in C holds.
#pragma once
#include "bertcl/bertcl.h"
#include "bertcl/session.hpp"

struct bertcl_session {
  bertcl::Session session;
};
