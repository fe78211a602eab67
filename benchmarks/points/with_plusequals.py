"""In the language of docs/language.md."""

from plusequals import cd


@cd
def nbody(force, p, mass, soft):
    """Distances, weights and forces of all pairs, of which no array is made."""
    r[i, j] = soft + (
        (p[j, 0] - p[i, 0]) ** 2 + (p[j, 1] - p[i, 1]) ** 2 + (p[j, 2] - p[i, 2]) ** 2
    )
    w[i, j] = mass[j] / (r[i, j] * sqrt(r[i, j]))
    force[i, k] = sum(w[i, j] * (p[j, k] - p[i, k]))


@cd
def pairwise(y, a, b):
    y[i, j] = sqrt(sum((a[i, k] - b[j, k]) ** 2))
