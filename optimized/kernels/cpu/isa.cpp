#include "cpu/isa.h"

#include <atomic>

namespace halfeven {

namespace {

bool supported(int wanted) {
  if (wanted == 0) return true;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (wanted == 1)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
#endif
  return false;
}

std::atomic<int> chosen{supported(1) ? 1 : 0};

}  // namespace

Isa isa() { return static_cast<Isa>(chosen.load(std::memory_order_relaxed)); }

}  // namespace halfeven

int halfeven_isa(int wanted) {
  if (wanted >= 0 && halfeven::supported(wanted)) halfeven::chosen.store(wanted, std::memory_order_relaxed);
  return static_cast<int>(halfeven::isa());
}
