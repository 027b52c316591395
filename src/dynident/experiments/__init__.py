"""A designed motion as people and controllers take it: words, pages, files."""
