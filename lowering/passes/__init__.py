"""Target-independent passes: functions from program to program, in the order of
`pipeline.PASSES`."""
