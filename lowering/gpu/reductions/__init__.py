"""Reductions and scans on devices: in a thread block, in many blocks, segmented, by columns."""
