"""Plans: routines recorded in program order, and run on streams that analysis chooses.

recording   calls, transfers and merges as nodes: steps, loops, branches
graph       dependences of nodes (RAW, WAR, WAW), without redundant ones; ranks
streams     a stream for each node, signals and waits
driver      runs of a scheduled body
replay      calls that are recorded once, and queued again on the streams of their routines
plan        what users hold: `Plan`, `Run`
report      tables and pictures of a plan
"""
