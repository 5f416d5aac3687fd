# Of what pytorch_rates.py printed and a profile's readable form: fails where a kernel takes longer here than by PyTorch on the
# same GPU, a product by more than 5 %, attention by more than 11 % (90 % of its rate), or was not measured.
#   awk -f rates.awk PYTORCH.txt PROFILE.yaml
FILENAME == ARGV[1] && /^[a-z]/ { split($0, parts, " = "); theirs[parts[1]] = parts[2] + 0; next }
FILENAME == ARGV[1] { print substr($0, 3); next }
/^  - "/ {
  row = substr($0, 6)
  if (row ~ /^gemm / && row !~ /\| gemm 0 1 0 =/) next # the product that PyTorch's is
  split(row, parts, " = ")
  for (kernel in theirs)
    if (index(row, kernel " ") == 1) ours[kernel] = parts[2] + 0
}
END {
  for (kernel in theirs) {
    most = kernel ~ /^gemm/ ? 1.05 : 1 / 0.9
    if (!(kernel in ours)) { print kernel ": not measured"; failed = 1; continue }
    printf "%s: %.1f us, by PyTorch %.1f us\n", kernel, ours[kernel], theirs[kernel]
    if (ours[kernel] > most * theirs[kernel]) { print kernel ": slower than PyTorch's"; failed = 1 }
  }
  exit failed
}
