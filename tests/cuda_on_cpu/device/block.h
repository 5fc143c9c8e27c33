// The threads of a block, run one after the other on one thread of the CPU.
//
// Each runs until it ends or waits at a barrier; when all have, those that wait continue, in the same order. So if a
// barrier is missing, a thread reads what later threads have not written yet.
#pragma once

#include <ucontext.h>

#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "place.h"

namespace emulated {

// The places of a block's threads, x fastest.
std::vector<Place> threads_of(Place size);

class Block {
 public:
  // Runs a kernel once for each of these threads, in this order.
  void run(const std::vector<Place>& order, const std::function<void()>& kernel);

  // Puts the running thread aside until the others have ended or wait too.
  void wait();

 private:
  // A stack that runs threads until one of them waits; that one keeps it.
  struct Fiber {
    static constexpr size_t kStackBytes = 256 << 10;
    std::unique_ptr<char[]> stack{new char[kStackBytes]};
    ucontext_t context;
  };

  static void enter();
  Fiber* idle_fiber();
  void resume(Fiber* fiber);

  const std::vector<Place>* order_ = nullptr;
  const std::function<void()>* kernel_ = nullptr;
  size_t next_ = 0;  // in order_, of the threads that have not begun
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_, waiting_;
  Fiber* running_ = nullptr;
  ucontext_t scheduler_;
};

}  // namespace emulated
