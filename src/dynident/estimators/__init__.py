"""Methods, a file each: from a problem to an estimate by factors, instruments or simulation."""
