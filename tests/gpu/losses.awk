# Of the outputs of `tandem execute` of one step, on a model whose weights are as they begin: fails unless every file has a loss,
# and all are near each other and near what such a model says. The logits are then independent of the labels, with a mean of 0 and
# a variance of 1 (runtime/contents/initial_values.h), so that the loss is ln(vocabulary) + 1/2. Of one token it varies as the
# logit of its label does, so that the mean of all has a standard deviation of 1 / sqrt(tokens), four of which are allowed.
#   awk -v vocabulary=128256 -v tokens=16384 -f losses.awk FILE..
function distance(a, b) { return a > b ? a - b : b - a }
$1 == "loss" { loss[FILENAME] = $2 + 0; text[FILENAME] = $2 }
END {
  expected = log(vocabulary) + 0.5
  for (i = 1; i < ARGC; ++i) {
    file = ARGV[i]
    if (!(file in loss) || text[file] !~ /^[0-9.]+$/) { print file ": no loss (" text[file] ")"; failed = 1; continue }
    ++files
    print file ": loss " text[file] ", expected " expected
    if (distance(loss[file], expected) > 4 / sqrt(tokens)) { print file ": far from ln(" vocabulary ") + 1/2"; failed = 1 }
    if (first == "") first = file
    if (distance(loss[file], loss[first]) > 0.01) { print file ": far from " first; failed = 1 }
  }
  exit failed || files < 2
}
