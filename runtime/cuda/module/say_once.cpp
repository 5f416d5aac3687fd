#include "runtime/cuda/module/say_once.h"

#include <iostream>
#include <mutex>
#include <set>

namespace tandem {

void say_once(const std::string& sentence) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  if (said.insert(sentence).second) std::cerr << "tandem: " << sentence << "\n";
}

}  // namespace tandem
