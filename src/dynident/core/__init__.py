"""What every room builds on: arrays, errors, the 10-vector of a body, words, files, progress."""
