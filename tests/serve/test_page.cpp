// SPDX-License-Identifier: Apache-2.0
// The page at `/`: its headers, and that it leaves POST / to Hugging Face's clients. What it does
// in a browser is tested by test_page_in_browser.py.
#include <map>
#include <string>

#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

std::map<std::string, std::string> headers_of(const HttpResponse& reply) {
  return {reply.headers.begin(), reply.headers.end()};
}

TEST(Page, IsOneDocumentThatAllowsItsOwnScriptAlone) {
  TestServer server({.models = {"classes"}});
  const auto page = server.client().Get("/");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->status, 200);
  EXPECT_EQ(page->get_header_value("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page->get_header_value("X-Content-Type-Options"), "nosniff");
  const std::string policy = page->get_header_value("Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'; script-src 'sha256-"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page->body, HasSubstr("<!DOCTYPE html>"));
  EXPECT_THAT(page->body, HasSubstr("addEventListener"));
  EXPECT_THAT(page->body, HasSubstr("prefers-color-scheme: dark"));
  for (const char* absent :
       {"@style@", "@script@", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write",
        "eval(", "localStorage", "<script src", "<link rel=\"stylesheet\"", "http://", "https://"})
    EXPECT_THAT(page->body, Not(HasSubstr(absent)));
  const auto head = server.client().Head("/");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->get_header_value("Content-Security-Policy"), policy);
}

TEST(Page, PostIsStillTheRouteOfHuggingFace) {
  TestService service({.models = {"classes"}});
  EXPECT_EQ(service.post("/", {{"inputs", "short"}}),
            nlohmann::json::array({service.post("/predict", {{"inputs", "short"}})}));
  for (const char* method : {"PUT", "DELETE", "PATCH"}) {
    const HttpResponse refused = service.call(method, "/");
    EXPECT_EQ(refused.status, 405) << method;
    EXPECT_THAT(refused.body, HasSubstr("is not allowed for / (allowed: "));
  }
}

TEST(Page, NeedsNeitherAKeyNorModels) {
  TestService locked({.models = {"classes"}, .service = {.api_key = "secret"}});
  EXPECT_EQ(locked.call("GET", "/").status, 200);
  EXPECT_EQ(locked.call("GET", "/info").status, 401);
  EXPECT_EQ(locked.call("POST", "/", json{{"inputs", "short"}}.dump()).status, 401);
  Metrics metrics;
  Service loading({}, metrics);
  RequestRecord record;
  const HttpResponse page = loading.handle({"GET", "/", ""}, record);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(record.route, "/");
  EXPECT_EQ(headers_of(page).count("Content-Security-Policy"), 1u);
  EXPECT_EQ(loading.handle({"GET", "/info", ""}, record).status, 503);
}

}  // namespace
}  // namespace bertcl::serve::tests
