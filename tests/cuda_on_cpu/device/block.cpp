// The threads of a block as fibers; see block.h.

#include "block.h"

#include <utility>

namespace emulated {

Place thread, block, block_size, grid_size;

namespace {
Block* running_block;  // for functions that take no argument; blocks run one at a time
}

void barrier() { running_block->wait(); }

std::vector<Place> threads_of(Place size) {
  std::vector<Place> threads;
  for (unsigned z = 0; z < size.z; ++z)
    for (unsigned y = 0; y < size.y; ++y)
      for (unsigned x = 0; x < size.x; ++x) threads.push_back({x, y, z});
  return threads;
}

void Block::run(const std::vector<Place>& order, const std::function<void()>& kernel) {
  running_block = this;
  order_ = &order;
  kernel_ = &kernel;
  next_ = 0;
  while (next_ < order.size()) resume(idle_fiber());
  while (!waiting_.empty())
    for (Fiber* fiber : std::exchange(waiting_, {})) resume(fiber);
}

void Block::wait() {
  const Place place = thread;
  waiting_.push_back(running_);
  swapcontext(&running_->context, &scheduler_);
  thread = place;
}

// What a fiber runs: threads that have not begun, until there are none. One whose thread waited finds none left then.
void Block::enter() {
  Block& block = *running_block;
  while (block.next_ < block.order_->size()) {
    thread = (*block.order_)[block.next_++];
    (*block.kernel_)();
  }
  block.idle_.push_back(block.running_);
}

Block::Fiber* Block::idle_fiber() {
  if (idle_.empty()) idle_.push_back(fibers_.emplace_back(new Fiber).get());
  Fiber* fiber = idle_.back();
  idle_.pop_back();
  getcontext(&fiber->context);
  fiber->context.uc_stack.ss_sp = fiber->stack.get();
  fiber->context.uc_stack.ss_size = Fiber::kStackBytes;
  fiber->context.uc_link = &scheduler_;
  makecontext(&fiber->context, enter, 0);
  return fiber;
}

void Block::resume(Fiber* fiber) {
  running_ = fiber;
  swapcontext(&scheduler_, &fiber->context);
}

}  // namespace emulated
