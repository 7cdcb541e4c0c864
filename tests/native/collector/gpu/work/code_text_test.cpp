#include "collector/gpu/work/code_text.h"

#include <string>

#include "check.h"

using namespace proton;

namespace {

std::string counted(std::string_view text, CodeLanguage language) {
  InstructionMix mix = count_instructions(text, language);
  std::string found;
  for (size_t i = 0; i < mix.size(); ++i)
    if (mix[i] != 0)
      found += (found.empty() ? "" : ", ") + std::string(kInstructionNames[i]) + " " +
               std::to_string(mix[i]);
  return found;
}

std::string of_ptx(std::string_view text) { return counted(text, CodeLanguage::kPtx); }
std::string of_gcn(std::string_view text) { return counted(text, CodeLanguage::kAmdGcn); }

} // namespace

TEST(state_spaces_of_ptx_tell_memories_apart) {
  CHECK_EQ(of_ptx("ld.global.v4.b32 {%r1, %r2}, [%rd1];\nld.b32 %r1, [%rd1];"), "global loads 2");
  CHECK_EQ(of_ptx("ld.shared::cta.b32 %r1, [%r2]; ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
                  "{%r1}, [%r2];"),
           "shared loads 2");
  CHECK_EQ(of_ptx("st.volatile.local.f32 [%rd1], %f1; ld.local.f32 %f1, [%rd1];"),
           "local loads 1, local stores 1");
  CHECK_EQ(of_ptx("ld.param.u64 %rd1, [a]; ld.const.f32 %f1, [t];"), "");
}

TEST(arithmetic_of_ptx_counts_by_its_widest_type) {
  CHECK_EQ(of_ptx("add.f64 a, b, c; fma.rn.f32 a, b, c, d; fma.rn.bf16x2 a, b, c, d;"),
           "fp64 1, fp32 1, fp16 1");
  CHECK_EQ(of_ptx("set.lt.u32.f32 a, b, c; mad.lo.s32 a, b, c, d; and.pred p, q, r;"),
           "fp32 1, integer 2");
  CHECK_EQ(of_ptx("cvt.rn.f16.f32 a, b; ex2.approx.ftz.f32 a, b; mov.b32 a, b;"),
           "special 1, conversions 1");
}

TEST(asynchronous_work_of_ptx_is_not_its_waiting) {
  CHECK_EQ(of_ptx("cp.async.cg.shared.global [a], [b], 16; cp.async.commit_group; "
                  "cp.async.wait_group 2;"),
           "async copies 1");
  CHECK_EQ(of_ptx("wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
                  "{a}, b, c, p, 1, 1;\nwgmma.wait_group.sync.aligned 0;"),
           "mma 1");
  CHECK_EQ(of_ptx("tcgen05.ld.sync.aligned.32x32b.x128.b32 {a}, [b]; "
                  "tcgen05.wait::ld.sync.aligned;"),
           "tensor memory 1");
}

TEST(only_instructions_of_ptx_count) {
  CHECK_EQ(of_ptx(".file 1 \"/a;add.s32 b//c.py\"\n.loc 1 2 3 // add.s32 a;\n"
                  ".visible .entry add(\n.param .u64 add_0\n)\n.reqntid 128\n{\n"
                  ".reg .pred p; /* add.s32; */\n$L__BB0_1: // ret\n@!%p1 bra.uni $L__BB0_1;\n}\n"
                  ".section .debug_str { .b8 97 // {add.s32\n}"),
           "branches 1");
  CHECK_EQ(of_ptx("{ waitLoop: mbarrier.try_wait.parity.shared::cta.b64 p, [%r1], %r2;\n"
                  "@!p bra.uni waitLoop; }"),
           "barriers 1, branches 1");
  CHECK_EQ(of_ptx("call.uni (r),\nvprintf,\n(\na,\nb\n);\nret;"), "branches 1");
}

TEST(broken_ptx_ends) {
  for (std::string_view text : {"", "@", "\"", "/*", ".", "add", "add.", "@!", "//", "a::", "{\"a"})
    CHECK_EQ(of_ptx(text), "");
  CHECK_EQ(of_ptx("add.s32"), "integer 1");
}

TEST(instructions_of_amd_count_by_their_prefix) {
  CHECK_EQ(of_gcn("kernel: ; @kernel\n\tglobal_load_dwordx4 v[0:3], v4, s[0:1]\n"
                  "\tds_write_b64 v1, v[2:3]\n\tscratch_store_b32 off, v1, s3 ; Folded Spill\n"
                  "\tv_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]\n"),
           "global loads 1, shared stores 1, local stores 1, mma 1");
  CHECK_EQ(of_gcn("\tv_dual_fmac_f32 v1, v2, v3 :: v_dual_add_f32 v4, v5, v6\n"
                  "\tv_add_u32_e32 v1, v2, v3\n\tv_mov_b32_e32 v1, v2\n\ts_waitcnt vmcnt(0)\n"),
           "fp32 2, integer 1");
  CHECK_EQ(of_gcn("\tbuffer_load_dword v1, s[0:3], 0 offen lds\n\ts_cbranch_scc1 .LBB0_1\n"
                  ".LBB0_1:\n\t.long add\n\ts_load_b64 s[0:1], s[2:3], 0x0"),
           "async copies 1, branches 1");
}
