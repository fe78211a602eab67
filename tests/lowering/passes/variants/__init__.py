"""What people write for eight known programs, and the arrays that are left of each: an expert's.

Each is written as someone who knows NumPy may write it. Rows, copies and tables that the text names
but that nobody needs whole have to go, whichever way it is written.
"""
