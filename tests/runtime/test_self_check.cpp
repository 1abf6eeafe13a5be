// SPDX-License-Identifier: Apache-2.0
// The check of a device at the first load: it runs once, and a kernel that is wrong is refused.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "default_model.hpp"
#include "ir/text.hpp"
#include "plan/builder.hpp"
#include "runtime/self_check.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

int files_of(const std::filesystem::path& folder) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    count += entry.path().filename().string().starts_with("self-check-");
  return count;
}

/// The programs that other tests have built: what is checked here is neither building nor storing.
void lend_programs(const tests::ScratchFolder& folder) {
  const char* cache = std::getenv("BERTCL_CACHE");
  if (!cache || !std::filesystem::is_directory(cache)) return;
  for (const auto& entry : std::filesystem::directory_iterator(cache))
    if (entry.path().extension() == ".clbin")
      std::filesystem::create_symlink(std::filesystem::absolute(entry.path()),
                                      folder / entry.path().filename().string());
}

/// The kernels of LayerNorm, with results three times as large.
void write_wrong_kernels(const tests::ScratchFolder& folder) {
  const std::filesystem::path rows = tests::source_file("kernels_cl") / "rows";
  std::filesystem::create_directory(folder / "rows");
  for (const char* name : {"add_norm.cl", "row_norm_group.clh"}) {
    std::ifstream file(rows / name);
    std::string text(std::istreambuf_iterator<char>(file), {});
    const std::size_t factor = text.find("factor = 1.0f / ");
    ASSERT_NE(factor, std::string::npos) << name;
    text.replace(factor, 16, "factor = 3.0f / ");
    folder.write(std::string("rows/") + name, text);
  }
  std::filesystem::copy_file(folder / "rows/add_norm.cl", folder / "add_norm.cl");
}

TEST(SelfCheck, RunsAtTheFirstLoadAndLeavesNothingButItsFile) {
  const tests::ScratchFolder folder;
  lend_programs(folder);
  const tests::ScopedVariable cache("BERTCL_CACHE", folder.path().string());
  for (int load = 0; load < 2; ++load) {
    const Session session = Session::load(model);
    EXPECT_EQ(session.statistics().tokens, 0);
    EXPECT_EQ(session.memory().values, 0);
    EXPECT_EQ(files_of(folder.path()), 1);
  }
}

TEST(SelfCheck, RefusesWrongKernelsAndForgetsThem) {
  const tests::ScratchFolder folder, wrong;
  write_wrong_kernels(wrong);
  lend_programs(folder);
  const tests::ScopedVariable cache("BERTCL_CACHE", folder.path().string());
  const tests::ScopedVariable kernels("BERTCL_KERNELS", wrong.path().string());
  for (int load = 0; load < 2; ++load)
    EXPECT_ERROR(AllOf(HasSubstr("computes wrong results: output '"), HasSubstr(model.string()),
                       HasSubstr("BERTCL_SELF_CHECK=off")),
                 Session::load(model));
  EXPECT_EQ(files_of(folder.path()), 0);
  const tests::ScopedVariable off("BERTCL_SELF_CHECK", "off");
  EXPECT_NO_THROW(Session::load(model));
}

TEST(SelfCheck, ModelsThatReadNoTokensAreNotChecked) {
  const ir::Graph graph = ir::parse(R"(graph g(%x: f32[n, 3, 3]) {
  %y: f32[n, 3, 3] = Relu(%x)
  return %y as y
})");
  plan::Plan plan = plan::make_plan(graph, opencl::Context::create(), {});
  std::atomic<std::int64_t> arenas = 0;
  Request request(plan, {}, arenas);
  EXPECT_FALSE(check_results(graph, plan, request, "g"));
}

}  // namespace
}  // namespace bertcl::runtime
