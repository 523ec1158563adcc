"""Text changed where it stands: found though its white space differs, made to fit its place, its line ends kept."""
