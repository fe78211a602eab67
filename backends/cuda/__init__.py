"""CUDA backend: kernels for NVIDIA devices, compiled by NVRTC, launched by the CUDA driver."""
