"""Arrays that trade places and end in an argument, and all that keeps them apart from it."""

_TWO = """
u, v = x.copy(), x.copy()
for t in range(3):
    v[1:-1] = u[:-2] + u[2:]
    u, v = v, u
"""

TRAPS = {
    "taken whole": f"{_TWO}y[...] = u",
    "an even number of rounds": f"{_TWO.replace('3', '4')}y[...] = u",
    "the other one": f"{_TWO}y[...] = v",
    "both": f"{_TWO}y[...] = u\nz[...] = v",
    "into a result": f"{_TWO}r[i] = u[i]\nreturn r",
    "three of them": """
        u, v, w = x.copy(), x.copy(), x.copy()
        for t in range(4):
            w[1:-1] = u[:-2] + v[2:]
            u, v, w = v, w, u
        y[...] = v
    """,
    "a part": f"{_TWO}y[1:] = u[1:]",
    "backwards": f"{_TWO}y[...] = u[::-1]",
    "added": f"{_TWO}y[...] += u",
    "twice its values": f"{_TWO}y[...] = u * 2",
    "read before": f"z[...] = y{_TWO}y[...] = u",
    "read on the way": _TWO.replace("u[2:]", "u[2:] + y[2:]") + "y[...] = u",
    "read afterwards": f"{_TWO}y[...] = u\nz[...] = y",
    "what it took is read afterwards": f"{_TWO}y[...] = u\nz[...] = u",
    "written before": f"y[...] = 5{_TWO}y[...] = u",
    "written afterwards": f"{_TWO}y[...] = u\ny[0] = 7",
    "only now and then": f"{_TWO}if x[0] > 0:\n    y[...] = u",
    "zeros at the start": _TWO.replace("x.copy(), x", "np.zeros(8), x") + "y[...] = u",
    "a check before": f"{_TWO}if x[0] > 0:\n    raise ValueError('no')\ny[...] = u",
    "a check afterwards": f"{_TWO}y[...] = u\nif x[0] > 0:\n    raise ValueError('no')",
    "a print on the way": f"{_TWO}    print(u[1])\ny[...] = u",
    "names of arguments": """
        for t in range(3):
            z[1:-1] = y[:-2] + y[2:]
            y, z = z, y
        y[0] = 5
    """,
    "one is an argument": """
        u = x.copy()
        for t in range(3):
            u[1:-1] = z[:-2] + z[2:]
            u, z = z, u
        y[...] = u
    """,
}
