"""What programs are: both IRs, each on a screen, and the tools that work on them."""
