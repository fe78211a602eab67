"""The backend `cuda`: kernels for NVIDIA devices, compiled with NVRTC, run by the CUDA driver."""
