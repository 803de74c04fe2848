// Every kernel of coordinates, maps and operators waits before it touches memory, where devices
// have dependent launches; for others no kernel says anything of them. Those of specifications:
// tests/kernels/spec_compile_test.cpp.
// Covers wait_for_previous and launch_next of device/pumice/platform_cuda.h.
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "coords/cuda/sources.hpp"
#include "formats/cuda/sources.hpp"
#include "graphs/cuda/sources.hpp"
#include "jit/nvrtc_support.hpp"
#include "maps/cuda/sources.hpp"
#include "ops/cuda/sources.hpp"
#include "support/ptx.hpp"
#include "support/ptx_paths.hpp"

namespace pumice::test {
namespace {

std::vector<std::span<const jit::KernelGroup>> all_groups() {
  return {cuda::coords_kernels(), cuda::maps_kernels(), cuda::graphs_kernels(),
          cuda::formats_kernels(), cuda::ops_kernels()};
}

TEST(DeviceKernelsCompile, ToKernelsThatWaitFirstOfAll) {
  PUMICE_NEEDS_NVRTC();
  if (!compiles_for(90)) GTEST_SKIP() << "this NVRTC does not compile for sm_90";
  for (const auto& groups : all_groups()) {
    for (const jit::KernelGroup& group : groups) {
      EntryCount count;
      const std::string ptx = ptx_of(group.source, "compute_90a");
      EXPECT_EQ(complaint_about_waiting(ptx, &count), "") << group.source.name;
      EXPECT_EQ(count.entries, static_cast<int>(group.kernels.size())) << group.source.name;
      EXPECT_EQ(count.triggers, 0) << group.source.name;   // none has a main loop
    }
  }
}

TEST(DeviceKernelsCompile, WithoutAWaitForDevicesThatHaveNone) {
  PUMICE_NEEDS_NVRTC();
  if (!compiles_for(80)) GTEST_SKIP() << "this NVRTC does not compile for sm_80";
  const std::string ptx = ptx_of(cuda::coords_kernels().back().source, "compute_80");   // small
  EXPECT_EQ(ptx.find("griddepcontrol"), std::string::npos);
  EXPECT_NE(complaint_about_waiting(ptx), "");
}

/// The complaint about a kernel of these lines.
std::string complaint_about(const std::string& lines) {
  return complaint_about_waiting(".visible .entry one(\n\t.param .b64 one_param_0\n)\n{\n" + lines +
                                 "\tret;\n}\n");
}

TEST(WaitingKernels, AreRefusedWhereAnythingComesBeforeTheWait) {
  const std::string harmless =
      "\t.reg .b32 %r<3>;\n\tld.param.b64 %rd1, [one_param_0];\n"
      "\tmov.u32 %r1, %ctaid.x;\n\tshl.b32 %r2, %r1, 5;\n";
  const std::string wait = "\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n";
  const std::string work = "\tld.global.b32 %r1, [%rd1];\n\tst.global.b32 [%rd1], %r1;\n";
  EXPECT_EQ(complaint_about(harmless + wait + work), "");
  EXPECT_EQ(complaint_about(harmless + work + wait),
            "one does something before it waits: ld.global.b32 %r1, [%rd1];");
  for (const char* line :
       {"ld.b32 %r1, [%rd1];", "st.shared.b32 [%r1], %r2;", "atom.global.add.u32 %r1, [%rd1], %r2;",
        "red.global.add.f32 [%rd1], %f1;", "cp.async.cg.shared.global [%r1], [%rd1], 16;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, "
        "[%r1];",
        "@%p1 bra $L__BB0_2;", "bra.uni $L__BB0_2;", "$L__BB0_2:", "@%p1 ret;", "ret;", "exit;",
        "bar.sync 0;", "call.uni (), f, ();", "@%p1 griddepcontrol.wait;",
        "prefetch.global.L2 [%rd1];"}) {
    EXPECT_EQ(complaint_about(harmless + "\t" + line + "\n" + wait + work),
              std::string("one does something before it waits: ") + line);
  }
  EXPECT_NE(complaint_about(harmless), "");
  EXPECT_EQ(complaint_about(wait + "\tld.global.nc.b32 %r1, [%rd1];\n"),
            "one reads what another kernel may be writing as constant: "
            "ld.global.nc.b32 %r1, [%rd1];");
  EXPECT_EQ(complaint_about("\tgriddepcontrol.launch_dependents;\n" + wait),
            "one lets the next grid in before it has waited: griddepcontrol.launch_dependents;");
}

/// The complaint about a kernel of these lines, which may read ahead.
std::string complaint_about_ahead(const std::string& lines) {
  return complaint_about_reading_ahead(
      ".visible .entry one(\n\t.param .b64 one_param_0\n)\n{\n\t.reg .pred \t%p<3>;\n" + lines +
      "}\n");
}

TEST(KernelsThatReadAhead, WaitOnEachPathBeforeTheyWriteOrReturn) {
  const std::string wait = "\t// begin inline asm\n\tgriddepcontrol.wait;\n\t// end inline asm\n";
  const std::string unless = "\t@%p1 bra \t$L__BB0_2;\n" + wait + "$L__BB0_2:\n";
  const std::string early =
      "\tld.relaxed.gpu.global.u32 %r1, [%rd1];\n\tbar.sync 0;\n\tst.shared.u32 [%r2], %r1;\n"
      "\tcp.async.cg.shared.global [%r1], [%rd1], 16;\n\t{ shl.b32 %r1, %r1, 2; }\n";
  const std::string late =
      "\tld.global.u32 %r1, [%rd1];\n\tst.global.u32 [%rd1], %r1;\n"
      "\tgriddepcontrol.launch_dependents;\n";
  const std::string loop = "$L__BB0_5:\n" + early + "\t@%p2 bra \t$L__BB0_5;\n";
  EXPECT_EQ(complaint_about_ahead(unless + early + wait + late + "\tret;\n"), "");
  EXPECT_EQ(complaint_about_ahead(unless + loop + wait + late + "\tret;\n"), "");
  // A block without a tile: one way waits, the other does not.
  const std::string returns =
      "\t@%p2 bra \t$L__BB0_4;\n" + wait + late + "\tbra.uni \t$L__BB0_6;\n";
  EXPECT_EQ(
      complaint_about_ahead(unless + returns + "$L__BB0_4:\n" + wait + "$L__BB0_6:\n\tret;\n"), "");
  EXPECT_EQ(complaint_about_ahead(unless + returns + "$L__BB0_4:\n$L__BB0_6:\n\tret;\n"),
            "one does on a path that has not waited: ret");
  // A wait at the end of a loop's body is none for its first turn.
  EXPECT_EQ(complaint_about_ahead("$L__BB0_7:\n\tst.global.u32 [%rd1], %r1;\n" + wait +
                                  "\t@%p1 bra \t$L__BB0_7;\n\tret;\n"),
            "one does on a path that has not waited: st.global.u32 [%rd1], %r1");
  for (const char* line :
       {"ld.global.u32 %r1, [%rd1]", "ld.u32 %r1, [%rd1]", "st.global.u32 [%rd1], %r1",
        "atom.global.add.u32 %r1, [%rd1], %r2", "red.global.add.f32 [%rd1], %f1", "exit",
        "cp.async.ca.shared.global [%r1], [%rd1], 4", "call.uni (), f, ()", "ret",
        "griddepcontrol.launch_dependents", "brx.idx %r1, targets",
        "st.shared::cluster.u32 [%r1], %r2",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], %r2, "
        "[%r3]"}) {
    EXPECT_EQ(
        complaint_about_ahead(unless + early + "\t@%p2 " + line + ";\n" + wait + late + "\tret;\n"),
        std::string("one does on a path that has not waited: ") + line);
  }
  EXPECT_EQ(complaint_about_ahead(unless + "\t@%p1 griddepcontrol.wait;\n\tret;\n"),
            "one does on a path that has not waited: ret");
  EXPECT_EQ(complaint_about_ahead(""), "one has no instructions");
  EXPECT_EQ(complaint_about_ahead(unless + early), "one has no end");
  EXPECT_EQ(complaint_about_ahead(unless + wait + "\t@%p2 ret;\n"), "one has no end");
  EXPECT_EQ(complaint_about_ahead(unless + "\tst.global.u32 [%rd1], %r1; $L__BB0_9: // early:\n" +
                                  wait + "\tret;\n"),
            "one does on a path that has not waited: st.global.u32 [%rd1], %r1");
  EXPECT_EQ(complaint_about_ahead(unless + "\t{ .reg .pred p; st.global.u32 [%rd1], %r1; }\n" +
                                  wait + "\tret;\n"),
            "one does on a path that has not waited: st.global.u32 [%rd1], %r1");
  EXPECT_EQ(complaint_about_ahead(wait + "\tld.global.nc.b32 %r1, [%rd1];\n\tret;\n"),
            "one reads what another kernel may be writing as constant: "
            "ld.global.nc.b32 %r1, [%rd1]");
}

}   // namespace
}   // namespace pumice::test
