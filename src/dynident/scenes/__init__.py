"""A robot in three dimensions: triangles of its bodies, ellipsoids, poses, and a page to play."""
