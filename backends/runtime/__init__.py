"""Run time: devices, streams, tensors, dependences between steps, transfers, checkpoints."""
