"""What is to be seen on a device: everything marked `gpu` waits for one. Jobs also run on the fake device, without."""
