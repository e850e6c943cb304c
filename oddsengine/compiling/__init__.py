"""All kernels: loaded ahead of time, or compiled for the package or for this machine."""
