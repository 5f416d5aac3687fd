# Of a profile's readable summary: memory-bound operations below 80 % of the bandwidth of a copy of as many bytes, where their
# largest kernel moves 64 MB or more; smaller ones are mostly launch. Fails when there are any, or no profile.
/^  bandwidth:/ { reading = 1; next }
/^[^ ]/ { reading = 0 }
reading {
  gsub(/[:,\[\]]/, "")
  ++operations
  if ($3 >= 64e6 && $2 < 0.8) {
    print $1 " reaches " $2 " of a copy's bandwidth"
    slow = 1
  }
}
END {
  print operations + 0 " operations"
  exit slow || !operations
}
