#include "cpu/isa.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace halfeven {

namespace {

bool supported(Isa wanted) {
  switch (wanted) {
    case Isa::Baseline: return true;
#if defined(__x86_64__)
    case Isa::Avx2:
      __builtin_cpu_init();
      return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    case Isa::Avx512:
      return supported(Isa::Avx2) && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#elif defined(__aarch64__)
    case Isa::Neon: return true;
#endif
    default: return false;
  }
}

Isa best() {
  for (const Isa each : {Isa::Neon, Isa::Avx512, Isa::Avx2})
    if (supported(each)) return each;
  return Isa::Baseline;
}

std::atomic<Isa> chosen{best()};

// Of usual processors, where the system does not tell; and the most that is believed. A virtual machine was told of
// 480 MiB, which it shares with others: from 128 MiB on, results were written at half the speed, and at 64 MiB it made
// no difference.
constexpr int64_t kUsual = int64_t{32} << 20, kMost = int64_t{64} << 20;

int64_t largest_cache() {
  int64_t most = 0;
#if defined(__linux__)
  for (int level = 0; level < 8; ++level) {
    char path[64], unit = 0;
    long long size = 0;
    std::snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    if (FILE* file = std::fopen(path, "r")) {
      if (std::fscanf(file, "%lld%c", &size, &unit) >= 1)
        most = std::max<int64_t>(most, unit == 'M' ? size << 20 : unit == 'K' ? size << 10 : size);
      std::fclose(file);
    }
  }
#endif
  return most > 0 ? std::min(most, kMost) : kUsual;
}

std::atomic<int64_t> caches{largest_cache()};

}  // namespace

Isa isa() { return chosen.load(std::memory_order_relaxed); }

int64_t cache_bytes() { return caches.load(std::memory_order_relaxed); }

}  // namespace halfeven

int halfeven_isa(int wanted) {
  const auto as = static_cast<halfeven::Isa>(wanted);
  if (wanted >= 0 && halfeven::supported(as)) halfeven::chosen.store(as, std::memory_order_relaxed);
  return static_cast<int>(halfeven::isa());
}

int64_t halfeven_cache_bytes(int64_t wanted) {
  if (wanted > 0) halfeven::caches.store(wanted, std::memory_order_relaxed);
  return halfeven::cache_bytes();
}
