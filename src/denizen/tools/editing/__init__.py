"""Changing text in place: found even if white space differs, laid out like its surroundings, line ends kept."""
