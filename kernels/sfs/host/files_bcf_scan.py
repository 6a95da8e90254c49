"""Native BCF scanner for the usual form: two alleles with three PL or GL per sample. Other records are left to the full
reader. Every length, type and number is checked before use."""

from __future__ import annotations

from typing import NamedTuple

import simtbed as st
from simtbed import Global, Local, f32, f64, i64, u8, u32
from simtbed.native import native

from .files_vcf_scan import TEN, TEN_TO_PHRED

AT, RECORDS, SITES, STOPPED, CONTIG, POSITION = range(6)
"""Indices of the scan state: bytes and records read, number of sites, reason of the stop, contig and position of the last record.
"""
STATE_SIZE = 6
FINISHED, FULL, UNUSUAL = range(3)
"""Reasons of a stop: end of the data; no capacity for another site; a record of another form."""
PLACES = 6
"""Elements per site: start and end of ID, REF and ALT."""
LENGTHS, FIXED = 8, 24
"""Bytes of the two lengths before a record, and of the fixed fields of its shared block."""
FLOAT, TEXT = 5, 7
MOST_FIELDS = 32
"""Maximum number of FORMAT fields."""
MISSING_BITS, END_BITS = 0x7F800001, 0x7F800002
"""htslib's marks for a missing float and for the end of a vector."""


@st.device
def word(data: Global[u8], at: i64) -> i64:
    """Return a little-endian 32-bit word."""
    return i64(u32(data[at]) | u32(data[at + 1]) << 8 | u32(data[at + 2]) << 16 | u32(data[at + 3]) << 24)


@native
def whole_records(data: Global[u8], length: i64, state: Global[i64]) -> None:
    """Find complete records. state: their length and number; contig and position of the last one, unchanged if there is none."""
    at = i64(0)
    count = i64(0)
    while at + LENGTHS <= length:
        end = at + LENGTHS + word(data, at) + word(data, at + 4)
        if end > length:
            break
        if end - at >= LENGTHS + FIXED:
            state[2] = word(data, at + LENGTHS)
            state[3] = word(data, at + LENGTHS + 4) + 1
        at = end
        count += 1
    state[0] = at
    state[1] = count


@st.device
def _size(kind: i64) -> i64:
    """Return the bytes of a value, -1 for an unknown type."""
    if kind == 1 or kind == TEXT:
        return i64(1)
    if kind == 2:
        return i64(2)
    if kind == 3 or kind == FLOAT:
        return i64(4)
    return i64(0) if kind == 0 else i64(-1)


@st.device
def _integer(data: Global[u8], at: i64, kind: i64) -> i64:
    """Return a value of an integer type."""
    state = i64(data[at])
    above = i64(1) << 8
    if kind == 2:
        state += i64(data[at + 1]) << 8
        above = i64(1) << 16
    elif kind == 3:
        state = word(data, at)
        above = i64(1) << 32
    return state - above if state >= above // 2 else state


@st.device
def _typed(data: Global[u8], at: i64, end: i64, to: Local[i64]) -> i64:
    """Read a type and a count into to[0] and to[1]; return the start of the values, or -1."""
    if at >= end:
        return i64(-1)
    kind = i64(data[at] & 15)
    count = i64(data[at] >> 4)
    at += 1
    if count == 15:
        if at >= end or data[at] >> 4 != 1:
            return i64(-1)
        wide = i64(data[at] & 15)
        at += 1
        if wide < 1 or wide > 3 or at + _size(wide) > end:
            return i64(-1)
        count = _integer(data, at, wide)
        at += _size(wide)
    to[0] = kind
    to[1] = count
    if _size(kind) < 0 or count < 0 or at + _size(kind) * count > end:
        return i64(-1)
    return at


@st.device
def _number(data: Global[u8], at: i64, end: i64, to: Local[i64]) -> i64:
    """Read one integer into to[2]; return its end, or -1."""
    first = _typed(data, at, end, to)
    if first < 0 or to[1] != 1 or to[0] < 1 or to[0] > 3 or data[at] >> 4 != 1:
        return i64(-1)
    to[2] = _integer(data, first, to[0])
    return first + _size(to[0])


@st.device
def _text(data: Global[u8], at: i64, end: i64, to: Local[i64], places: Global[i64], place: i64) -> i64:
    """Read an ASCII text without trailing zeros; return its end, or -1."""
    first = _typed(data, at, end, to)
    if first < 0 or (to[0] != TEXT and to[1] != 0):
        return i64(-1)
    last = first + (to[1] if to[0] == TEXT else i64(0))
    high = u8(0)
    for i in range(first, last):
        high = high | data[i]
    behind = last
    while last > first and data[last - 1] == 0:
        last -= 1
    places[place] = first
    places[place + 1] = last
    return behind if high < 128 else i64(-1)


@st.device
def _is_letters(data: Global[u8], first: i64, last: i64) -> bool:
    """Return whether an allele consists of letters. Symbolic alleles contain other characters."""
    good = last > first
    for i in range(first, last):
        c = data[i] | 32
        good = good & (c >= 97) & (c <= 122)
    return good


class HeaderNumbers(NamedTuple):
    """Numbers of the header. contigs, names: whether each number is defined. phred, real: numbers of PL and GL, -1 if undefined.
    samples: number of samples."""

    contigs: Global[bool]
    contig_count: i64
    names: Global[bool]
    name_count: i64
    phred: i64
    real: i64
    samples: i64


class RecordSites(NamedTuple):
    """Columns of a batch of sites. logarithms: three of each sample minus their maximum, which is in `largest`; zeros if one is
    missing. ids: numbers of contigs. places: start and end of ID, REF and ALT. capacity: number of sites."""

    capacity: i64
    logarithms: Global[f64]
    largest: Global[f64]
    ids: Global[i64]
    positions: Global[i64]
    places: Global[i64]


@native
def scan_records(data: Global[u8], length: i64, header: HeaderNumbers, sites: RecordSites, state: Global[i64]) -> None:
    """Read records from data[state[AT]] on as sites from state[SITES] on."""
    values = st.local(i64, 2)
    at = state[AT]
    state[STOPPED] = FINISHED
    while at + LENGTHS <= length:
        site = state[SITES]
        if site == sites.capacity:
            state[STOPPED] = FULL
            break
        middle = at + LENGTHS + word(data, at)
        end = middle + word(data, at + 4)
        good = end <= length and middle - at >= LENGTHS + FIXED
        good = good and _shared(data, at + LENGTHS, middle, header, sites.places, site * PLACES)
        if good:
            good = _formats(data, middle, end, i64(word(data, at + LENGTHS + 20)) >> 24, header, values)
        good = good and _samples(data, values[0], values[1], header.samples, sites, site)
        if not good:
            state[STOPPED] = UNUSUAL
            break
        state[CONTIG] = _integer(data, at + LENGTHS, i64(3))
        state[POSITION] = _integer(data, at + LENGTHS + 4, i64(3)) + 1
        sites.ids[site] = state[CONTIG]
        sites.positions[site] = state[POSITION]
        state[SITES] = site + 1
        state[RECORDS] += 1
        at = end
    state[AT] = at


@st.device
def _shared(data: Global[u8], fixed: i64, end: i64, header: HeaderNumbers, places: Global[i64], place: i64) -> bool:
    """Return whether the shared block of a record is usual: a defined contig, two alleles of letters, defined INFO fields.
    places[place:]: start and end of ID, REF and ALT."""
    to = st.local(i64, 3)
    contig = _integer(data, fixed, i64(3))
    counts = word(data, fixed + 16)
    formats = word(data, fixed + 20)
    good = 0 <= contig < header.contig_count and header.contigs[contig]
    good = good and _integer(data, fixed + 4, i64(3)) >= -1
    good = good and formats & 0xFFFFFF == header.samples and counts >> 16 == 2 and formats >> 24 <= MOST_FIELDS
    p = fixed + FIXED if good else i64(-1)
    for text in range(i64(3)):
        if p >= 0:
            p = _text(data, p, end, to, places, place + 2 * text)
    if p >= 0 and not _is_letters(data, places[place + 4], places[place + 5]):
        p = i64(-1)
    for step in range((counts & 0xFFFF) * 2 + 1):
        if p >= 0:
            if step & 1 == 1:  # the number of an INFO field, after FILTER or the values of the preceding field
                p = _number(data, p, end, to)
                if p >= 0 and not (0 <= to[2] < header.name_count and header.names[to[2]]):
                    p = i64(-1)
            else:
                p = _skip(data, p, end, to)
    return p == end


@st.device
def _skip(data: Global[u8], at: i64, end: i64, to: Local[i64]) -> i64:
    """Return the end of a typed value, or -1."""
    p = _typed(data, at, end, to)
    return p + _size(to[0]) * to[1] if p >= 0 else i64(-1)


@st.device
def _formats(data: Global[u8], p: i64, end: i64, fields: i64, header: HeaderNumbers, values: Local[i64]) -> bool:
    """Return whether the FORMAT fields of a record are usual: defined, distinct, one of them PL or GL with three values.
    values: (start of its values, their type); negative for GL."""
    to = st.local(i64, 3)
    names = st.local(i64, MOST_FIELDS)
    values[0] = -1
    is_phred = False
    for field in range(fields):
        if p >= 0:
            p = _number(data, p, end, to)
            name = to[2]
            if p >= 0 and not (0 <= name < header.name_count and header.names[name]):
                p = i64(-1)
            for before in range(field):
                if p >= 0 and names[before] == name:
                    p = i64(-1)
            names[field] = name
            if p >= 0:
                p = _typed(data, p, end, to)
            size = _size(to[0]) * to[1] * header.samples
            if p >= 0 and p + size > end:
                p = i64(-1)
            if p >= 0 and (name == header.phred or (name == header.real and not is_phred)):
                is_phred = name == header.phred
                values[0] = p
                values[1] = to[0] if is_phred else -to[0]
                if to[1] != 3 or ((to[0] < 1 or to[0] > 3) if is_phred else to[0] != FLOAT):
                    p = i64(-1)
            if p >= 0:
                p += size
    return p == end and values[0] >= 0


@st.device
def _samples(data: Global[u8], first: i64, kind: i64, samples: i64, sites: RecordSites, site: i64) -> bool:
    """Store the likelihoods of all samples; return whether they are usual. kind: their type, negative for GL."""
    good = True
    for sample in range(samples):
        if good:
            place = site * samples + sample
            if kind > 0:
                at = first + 3 * _size(kind) * sample
                good = _integers(data, at, kind, sites.logarithms, sites.largest, place)
            else:
                good = _reals(data, first + 12 * sample, sites.logarithms, sites.largest, place)
    return good


@st.device
def _keep(logarithms: Global[f64], largest: Global[f64], place: i64, a: f64, b: f64, c: f64) -> None:
    most = max(max(a, b), c)
    logarithms[3 * place] = a - most
    logarithms[3 * place + 1] = b - most
    logarithms[3 * place + 2] = c - most
    largest[place] = most


@st.device
def _integers(data: Global[u8], at: i64, kind: i64, logarithms: Global[f64], largest: Global[f64], place: i64) -> bool:
    """Store the Phred scores of a sample; return whether they are three non-negative numbers, or one or all are missing."""
    size = _size(kind)
    a = _integer(data, at, kind)
    b = _integer(data, at + size, kind)
    c = _integer(data, at + 2 * size, kind)
    missing = i64(-128) if kind == 1 else (i64(-32768) if kind == 2 else i64(-2147483648))
    ended = missing + 1
    if a == missing or b == missing or c == missing or (a == ended and b == ended and c == ended):
        _keep(logarithms, largest, place, f64(0), f64(0), f64(0))
        return True
    if a < 0 or b < 0 or c < 0:
        return False
    _keep(logarithms, largest, place, f64(a) * TEN_TO_PHRED, f64(b) * TEN_TO_PHRED, f64(c) * TEN_TO_PHRED)
    return True


@st.device
def _reals(data: Global[u8], at: i64, logarithms: Global[f64], largest: Global[f64], place: i64) -> bool:
    """Store the logarithms of a sample; return whether there are three, or one or all are missing."""
    a = u32(word(data, at))
    b = u32(word(data, at + 4))
    c = u32(word(data, at + 8))
    missing = a == MISSING_BITS or b == MISSING_BITS or c == MISSING_BITS
    if missing or (a == END_BITS and b == END_BITS and c == END_BITS):
        _keep(logarithms, largest, place, f64(0), f64(0), f64(0))
        return True
    p = f64(st.bitcast(f32, a)) * TEN
    q = f64(st.bitcast(f32, b)) * TEN
    r = f64(st.bitcast(f32, c)) * TEN
    if p != p or q != q or r != r or max(max(p, q), r) > 1e300 or max(max(p, q), r) < -1e300:
        return False
    _keep(logarithms, largest, place, p, q, r)
    return True
