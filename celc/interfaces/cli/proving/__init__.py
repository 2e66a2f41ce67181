"""`celc prove` and `celc compile --prove`: what is proved of a module, in words and as JSON."""
