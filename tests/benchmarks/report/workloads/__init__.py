"""What systems are asked: a module each, with a function that takes a `contest.Setting` and leaves figures in it."""
