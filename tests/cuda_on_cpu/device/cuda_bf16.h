// bfloat16 for CuPy's kernels. What computes with it is not defined: such numbers can be moved, and a kernel that does
// more does not load.
#pragma once

struct __nv_bfloat16 {
  unsigned short bits;

  __nv_bfloat16() = default;
  __nv_bfloat16(float value);
  operator float() const;
};

unsigned short __bfloat16_as_ushort(__nv_bfloat16 value);
__nv_bfloat16 __ushort_as_bfloat16(unsigned short bits);
bool __hisnan(__nv_bfloat16 value);
int __hisinf(__nv_bfloat16 value);
