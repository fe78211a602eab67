"""What is stored and soon replaced, and what somebody sees before; results that start as zeros."""

TRAPS = {
    "filled and stored": "y[i] = 0\ny[i] = x[i]",
    "computed and stored": "y[i] = x[i] * 2\ny[i] = x[i] + 1",
    "three times": "y[i] = 0\ny[i] = 1\ny[i] = x[i]",
    "another array between": "y[i] = 0\nz[i] = x[i]\ny[i] = x[i] + 1",
    "all but one": "y[i] = 0\ny[1:] = x[1:]",
    "one, and then all": "y[0] = 1\ny[i] = x[i]",
    "in two parts": "y[i] = 0\ny[:4] = x[:4]\ny[4:] = x[4:]",
    "read between": "y[i] = 0\nz[i] = y[i]\ny[i] = x[i]",
    "one is read between": "y[i] = 0\nz[0] = y[3]\ny[i] = x[i]",
    "read where it is replaced": "y[i] = 1\ny[i] = y[i] + x[i]",
    "read elsewhere where it is replaced": """
        y[i] = 1
        for k in range(8):
            y[k] = y[7 - k] + x[k]
    """,
    "read after it was replaced, in the round": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            z[k] = y[k]
    """,
    "added to": "y[i] = 1\ny[i] += x[i]",
    "added to after it was replaced": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            y[k] += 2
    """,
    "summed": "y[i] = 1\ny[i] = sum(a[i, j])",
    "under a guard": "y[i] = 1\nif x[i] > 0:\n    y[i] = x[i]",
    "on both sides": """
        y[i] = 1
        for k in range(8):
            if x[k] > 0:
                y[k] = 2
            else:
                y[k] = 3
    """,
    "guarded itself": "if x[i] > 0:\n    y[i] = 1\ny[i] = z[i]",
    "as far as asked": "y[i] = 1\nfor k in range(n):\n    y[k] = x[k]",
    "looked up": "y[i] = 1\ny[p[i]] = x[i]",
    "a loop that may be left": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            if x[k] > 1:
                break
    """,
    "a while": "y[i] = 1\ns = 0\nwhile s < 8:\n    y[s] = x[s]\n    s += 1",
    "a check between": "y[i] = 1\nassert x[0] < 3\ny[i] = x[i]",
    "a check where it is replaced": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            assert x[k] < 3
    """,
    "a print between": "y[i] = 1\nprint(x[0])\ny[i] = x[i]",
    "a print where it is replaced": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            print(x[k])
    """,
    "a check after": "y[i] = 1\ny[i] = x[i]\nassert x[0] < 3",
    "a check in it": """
        for k in range(8):
            y[k] = 1
            assert x[k] < 3
        y[i] = x[i]
    """,
    "a print in it": """
        for k in range(8):
            y[k] = 1
            print(x[k])
        y[i] = x[i]
    """,
    "a temporary, and a check": """
        t: f64[8]
        t[i] = 1
        assert x[0] < 3
        t[i] = x[i]
        y[i] = t[7 - i]
    """,
    "a temporary, and a print": """
        t: f64[8]
        t[i] = 1
        print(x[0])
        t[i] = x[i]
        y[i] = t[7 - i]
    """,
    "a temporary that is printed": """
        t: f64[8]
        t[i] = 1
        print(t[0])
        t[i] = x[i]
        y[i] = t[7 - i]
    """,
    "a temporary that is replaced in part": "t: f64[8]\nt[i] = 1\nt[2:] = x[2:]\ny[i] = t[i]",
    "never replaced": "y[i] = 1\nz[i] = x[i]",
    "two arrays at once": """
        for k in range(8):
            y[k] = 1
            z[k] = 2
        y[i] = x[i]
        z[i] = x[i]
    """,
    "replaced together with another": """
        y[i] = 1
        for k in range(8):
            y[k] = x[k]
            z[k] = x[k]
    """,
    "in a round": "for k in range(3):\n    y[i] = 1\n    y[i] = x[i] * k",
    "in the next round": """
        for k in range(3):
            z[i] += y[i]
            y[i] = x[i] * k
    """,
    "in rounds that may not be": """
        y[i] = 1
        for k in range(n):
            y[i] = x[i]
    """,
    "in every round": "y[i] = 1\nfor k in range(3):\n    y[i] = x[i] * k",
    "a round that may be left": """
        for k in range(3):
            y[i] = k
            if x[k] > 0:
                break
            y[i] = x[i]
    """,
    "a round that may be cut short": """
        for k in range(3):
            y[i] = k
            if x[k] > 0:
                continue
            y[i] = x[i]
    """,
    "on one side": """
        for k in range(3):
            if x[k] > 0:
                y[i] = 1
                y[i] = x[i]
            else:
                z[i] = 1
                z[i] = x[i] * k
    """,
    "in a round of a while": """
        s = 0
        while s < 3:
            y[i] = 1
            y[i] = x[i] * s
            s += 1
    """,
    "an array of zeros": "t = np.zeros(8)\nt[:] = x * 2\ny[i] = t[7 - i]",
    "an array of zeros, in part": "t = np.zeros(8)\nt[1:] = x[1:] * 2\ny[i] = t[7 - i]",
    "a number": "s = 1.0\ns = x[0]\ny[0] = s",
    "a matrix by rows": """
        a[i, j] = 1
        for k in range(8):
            for m in range(8):
                a[k, m] = x[m]
    """,
    "a matrix by one row": """
        a[i, j] = 1
        for m in range(8):
            a[3, m] = x[m]
    """,
    "half a matrix": """
        a[i, j] = 1
        for k in range(8):
            for m in range(k):
                a[k, m] = x[m]
    """,
    "a diagonal": "a[i, j] = 1\nfor k in range(8):\n    a[k, k] = x[k]",
    "it trades places": """
        u[i] = x[i]
        w[i] = x[i] * 2
        for k in range(3):
            u[i] = 1
            u, w = w, u
            u[i] = w[i] + 1
        y[i] = u[i]
    """,
}

ZERO_FILLS = {
    "a result of zeros": "r = np.zeros(8)\nreturn r",
    "a result of zeros, in part": "r = np.zeros(8)\nr[1:] = x[1:]\nreturn r",
    "a result of ones": "r = np.ones(8)\nr[1:] = x[1:]\nreturn r",
    "a result that is minus zero": "r = np.zeros(8)\nr[i] = -0.0\nreturn r",
    "a result of whole zeros": "r = np.zeros(8, dtype=np.int64)\nr[2] = p[2]\nreturn r",
    "a result of nothing true": "r = np.zeros(8, dtype=np.bool_)\nr[2] = x[2] > 0\nreturn r",
    "zeros that come later": "r[i] = x[i]\nr[i] = 0\nreturn r",
    "zeros after a store": "r = np.zeros(8)\nr[0] = 1\nr[i] = 0\nreturn r",
    "zeros twice": "r = np.zeros(8)\nr[i] = 0\nreturn r",
    "zeros after it was read": "r = np.zeros(8)\ny[i] = r[i]\nr[i] = 0\nreturn r",
    "zeros of the caller": "y[i] = 0\nreturn y[0]",
    "zeros of a temporary": "t = np.zeros(8)\nr[i] = t[7 - i] + x[i]\nreturn r",
    "two results of zeros": "r = np.zeros(8)\nt = np.zeros(8)\nr[1:] = x[1:]\nreturn r, t",
    "two results at once": """
        r = np.zeros(8)
        t = np.ones(8)
        for k in range(8):
            r[k] = 0
            t[k] = 0
        return r, t
    """,
    "a sum": "r[i] = sum(a[i, j])\nreturn r",
    "zeros and more": """
        r: f64[8]
        for k in range(7):
            r[k] = 0
            r[k + 1] = 2
        return r
    """,
    "zeros and a sum": """
        r: f64[8]
        for k in range(8):
            r[k] = 0
            r[k] += x[k]
        return r
    """,
    "zeros in rounds": """
        r = np.ones(8)
        for k in range(3):
            r[i] = 0
            r[k] += 1
        return r
    """,
    "zeros under a check": "r = np.zeros(8)\nassert x[0] < 3\nr[i] += x[i]\nreturn r",
    "a number": "s = 0.0\nreturn s",
    "a number of zero, or one": """
        s = 0.0
        if x[0] > 0:
            s = 1.0
        return s
    """,
    "a result of zeros that is summed": "r = np.zeros(8)\nr += x\nr[0] = 0\nreturn r",
}
