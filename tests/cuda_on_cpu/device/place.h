// The place of the running thread, and how it waits for the others: what the kernels and block.cpp share.
#pragma once

namespace emulated {

struct Place {
  unsigned x, y, z;
};

extern Place thread, block, block_size, grid_size;

// Puts the running thread aside until every other one of its block has ended or waits too.
void barrier();

}  // namespace emulated
