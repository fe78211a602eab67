"""Arrays that trade places and end in an argument, and all that keeps them apart from it."""

_ROUNDS = """
        for t in range(3):
            v[1:-1] = u[:-2] + u[2:]
            u, v = v, u
"""
_TWO = "u, v = x.copy(), x.copy()" + _ROUNDS

EXCHANGE = {
    "taken whole": f"{_TWO}        y[...] = u",
    "an even number of rounds": f"{_TWO.replace('3', '4')}        y[...] = u",
    "the other one": f"{_TWO}        y[...] = v",
    "both": f"{_TWO}        y[...] = u\n        z[...] = v",
    "into a result": f"{_TWO}        r[i] = u[i]\n        return r",
    "three of them": """
        u, v, w = x.copy(), x.copy(), x.copy()
        for t in range(4):
            w[1:-1] = u[:-2] + v[2:]
            u, v, w = v, w, u
        y[...] = v
    """,
    "a part": f"{_TWO}        y[1:] = u[1:]",
    "backwards": f"{_TWO}        y[...] = u[::-1]",
    "added": f"{_TWO}        y[...] += u",
    "twice its values": f"{_TWO}        y[...] = u * 2",
    "read before": f"z[...] = y\n        {_TWO}        y[...] = u",
    "read on the way": _TWO.replace("u[2:]", "u[2:] + y[2:]") + "        y[...] = u",
    "read afterwards": f"{_TWO}        y[...] = u\n        z[...] = y",
    "what it took is read afterwards": f"{_TWO}        y[...] = u\n        z[...] = u",
    "written before": f"y[...] = 5\n        {_TWO}        y[...] = u",
    "written afterwards": f"{_TWO}        y[...] = u\n        y[0] = 7",
    "only now and then": f"{_TWO}        if n > 2:\n            y[...] = u",
    "zeros at the start": _TWO.replace("u, v = x.copy(), x.copy()", "u, v = np.zeros(8), x.copy()")
    + "        y[...] = u",
    "a check before": f"{_TWO}        if x[0] > 0:\n            raise ValueError('no')\n"
    "        y[...] = u",
    "a check afterwards": f"{_TWO}        y[...] = u\n        if x[0] > 0:\n"
    "            raise ValueError('no')",
    "a print on the way": _TWO.replace("u, v = v, u", "print(u[1])\n            u, v = v, u")
    + "        y[...] = u",
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
