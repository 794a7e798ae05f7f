"""PTX, what a GPU's driver is handed, read and run on the CPU: for the kernels of the GPU, where there is none."""
