"""`numpy-dist doctor`: what of this installation and machine is as it should be, and how the rest is mended."""
