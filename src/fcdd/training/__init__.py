"""Learning: the loop and its methods, the bank of a frozen trunk's features, checkpoints, several processes."""
