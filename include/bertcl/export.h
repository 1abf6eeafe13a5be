/* SPDX-License-Identifier: Apache-2.0
 * Marks what libbertcl.so exports.
 */
#ifndef BERTCL_EXPORT_H_
#define BERTCL_EXPORT_H_

#if defined(__GNUC__)
#define BERTCL_API __attribute__((visibility("default")))
#else
#define BERTCL_API
#endif

#endif
