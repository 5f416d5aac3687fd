#pragma once

namespace tandem {

/// Gives the system back what was freed and the heap keeps. Takes a millisecond or two for some ten megabytes, and what is
/// allocated afterwards is mapped anew: for a moment when much was freed that nothing as large will use.
void give_back_freed_memory();

}  // namespace tandem
