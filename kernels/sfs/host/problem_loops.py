"""Native loops over the likelihoods: validity, information, order of alleles, normalisation."""

from __future__ import annotations

from simtbed import Global, f64, i64
from simtbed.native import native


@native
def first_wrong(likelihoods: Global[f64], vectors: i64, largest: f64) -> i64:
    """Return the index of the first triple that is not within 0 and `largest` or is all 0; -1 if there is none."""
    for at in range(vectors):
        a = likelihoods[3 * at]
        b = likelihoods[3 * at + 1]
        c = likelihoods[3 * at + 2]
        fit = (a >= 0) & (b >= 0) & (c >= 0) & (a <= largest) & (b <= largest) & (c <= largest)
        if not (fit & ((a > 0) | (b > 0) | (c > 0))):
            return i64(at)
    return i64(-1)


@native
def informed(likelihoods: Global[f64], individuals: i64, sites: i64, target: Global[bool]) -> i64:
    """Compute whether each site has information on an individual; return the number of such sites."""
    count = i64(0)
    for site in range(sites):
        informative = False
        for at in range(site * individuals, (site + 1) * individuals):
            a = likelihoods[3 * at]
            informative = informative | (likelihoods[3 * at + 1] != a) | (likelihoods[3 * at + 2] != a)
        target[site] = informative
        count += i64(informative)
    return count


@native
def swap_alleles(likelihoods: Global[f64], individuals: i64, sites: i64, swapped: Global[bool]) -> None:
    """Exchange the likelihoods of the first and the second allele at the swapped sites."""
    for site in range(sites):
        if swapped[site]:
            for at in range(site * individuals, (site + 1) * individuals):
                a = likelihoods[3 * at]
                likelihoods[3 * at] = likelihoods[3 * at + 2]
                likelihoods[3 * at + 2] = a


@native
def by_largest(likelihoods: Global[f64], vectors: i64, middle: f64, target: Global[f64], largest: Global[f64]) -> None:
    """Multiply the middle of each triple by `middle` and divide the triple by its maximum, if it is positive; store the maximum."""
    for at in range(vectors):
        a = likelihoods[3 * at]
        b = likelihoods[3 * at + 1] * middle
        c = likelihoods[3 * at + 2]
        most = max(max(a, b), c)
        divisor = most if most > 0 else f64(1)
        largest[at] = most
        target[3 * at] = a / divisor
        target[3 * at + 1] = b / divisor
        target[3 * at + 2] = c / divisor


@native
def tiled_vectors(
    vectors: Global[f64], individuals: i64, sites: i64, sections: i64, leaves: i64, group: i64, target: Global[f64]
) -> None:
    """Write the layout of `by_tiles`."""
    for section in range(sites * sections):
        first = section % sections * leaves * group
        begin = section // sections * individuals * 3
        for q in range(group):
            for g in range(i64(3)):
                at = ((section * group + q) * 3 + g) * leaves
                for leaf in range(leaves):
                    individual = first + leaf * group + q
                    none = f64(1) if g == 0 else f64(0)
                    target[at + leaf] = vectors[begin + individual * 3 + g] if individual < individuals else none
