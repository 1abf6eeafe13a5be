// SPDX-License-Identifier: Apache-2.0
// GET /: a page that tries the models in a browser. It asks by the routes that all clients use.
#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "serve/page/page_files.hpp"
#include "serve/routes/routes.hpp"
#include "text/base/base64.hpp"

namespace bertcl::serve {
namespace {

struct Page {
  std::string html, policy;
};

std::string with_part(std::string html, std::string_view mark, std::string_view part) {
  return html.replace(html.find(mark), mark.size(), part);
}

/// By which a Content-Security-Policy names a script or a style sheet.
std::string csp_hash(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  return fmt::format("'sha256-{}'", text::base64(std::as_bytes(std::span(digest).first(size))));
}

/// Nothing runs or loads but what is in the page, and it talks to this server alone.
Page make_page() {
  return {with_part(with_part(std::string(page_html), "@style@", page_css), "@script@", page_js),
          fmt::format("default-src 'none'; script-src {}; style-src {}; img-src data:; "
                      "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'",
                      csp_hash(page_js), csp_hash(page_css))};
}

HttpResponse page_route(Context&) {
  static const Page page = make_page();
  return {200,
          page.html,
          "text/html; charset=utf-8",
          {{"Content-Security-Policy", page.policy},
           {"X-Content-Type-Options", "nosniff"},
           {"Referrer-Policy", "no-referrer"},
           {"Cache-Control", "no-cache"}}};
}

}  // namespace

/// Without a key and while models are being loaded, too: it asks for the key, and waits.
std::vector<Route> page_routes() { return {{"GET", "/", page_route, true, true}}; }

}  // namespace bertcl::serve
