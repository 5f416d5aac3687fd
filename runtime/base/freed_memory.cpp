#include "runtime/base/freed_memory.h"

#include <malloc.h>

namespace tandem {

void give_back_freed_memory() { ::malloc_trim(0); }

}  // namespace tandem
