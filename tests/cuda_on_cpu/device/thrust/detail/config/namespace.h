// What CuPy's complex numbers need of this header of Thrust's. The real one brings thousands of lines that expect
// NVIDIA's compilers.
#pragma once

#define THRUST_NAMESPACE_BEGIN namespace thrust {
#define THRUST_NAMESPACE_END }
