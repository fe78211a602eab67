"""Both IRs, and the tools that traverse, rewrite, verify, print and interpret them."""
