"""Barriers of the SM simulator: those of a block, and those in shared memory, whose phases warps and bulk copies complete."""

from .. import language as st
from ..language.hints import f64, i64
from .instruction_stream import Role
from .lsu import copy
from .sm_state import Cycle, Sm, Status


# ------------------------------------------------------------------ barriers of blocks
@st.device
def arrive_at_barrier(sm: Sm) -> f64:
    """Return the cycle when the barrier unit accepts the next arrival."""
    sm.clock[Cycle.BARRIER_FREE] = max(sm.clock[Cycle.BARRIER_FREE], sm.clock[Cycle.NOW]) + sm.rates.barrier_interval
    return sm.clock[Cycle.BARRIER_FREE]


@st.device
def _resume(sm: Sm, warp: i64, when: f64) -> None:
    """Let a warp issue from a cycle on."""
    earliest = max(sm.warps.ready_without_scoreboards[warp], when)
    sm.warps.ready_without_scoreboards[warp] = earliest
    sm.warps.ready[warp] = max(sm.warps.ready[warp], earliest)
    sm.clock[Cycle.SOONEST] = min(sm.clock[Cycle.SOONEST], sm.warps.ready[warp])


@st.device
def release_barrier(sm: Sm, slot: i64) -> None:
    """Release the warps of a block that has arrived at its barrier."""
    sm.slots.barrier_arrivals[slot] = i64(0)
    released = sm.clock[Cycle.BARRIER_FREE] + sm.rates.barrier_latency
    for warp in range(slot * sm.launch.warps, (slot + 1) * sm.launch.warps):
        if sm.warps.status[warp] == Status.AT_BARRIER:
            sm.warps.status[warp] = i64(Status.RUNNING)
            _resume(sm, warp, released)


# ------------------------------------------------------------------ phases of barriers in shared memory
@st.device
def _phase_of(sm: Sm, warp: i64, n: i64) -> i64:
    """Return the phase of instruction n of a warp, -1 if no lane of it is active."""
    event, phase = sm.warps.event[warp], i64(-1)
    if event < sm.launch.past_events[sm.warps.order[warp]] and sm.launch.event_instructions[event] == n:
        phase = sm.launch.event_phases[event]
        sm.warps.event[warp] += 1
    return phase


@st.device
def _arrive_at_phase(sm: Sm, slot: i64, phase: i64, when: f64) -> None:
    """Count an arrival at a phase; the last one releases the warps that wait for it."""
    place = slot * sm.launch.most_phases + phase
    sm.slots.left[place] -= 1
    sm.slots.phase_times[place] = max(sm.slots.phase_times[place], when)
    if sm.slots.left[place] == 0:
        for warp in range(slot * sm.launch.warps, (slot + 1) * sm.launch.warps):
            if sm.warps.status[warp] == Status.AT_PHASE and sm.warps.awaited[warp] == phase:
                sm.warps.status[warp] = i64(Status.RUNNING)
                _resume(sm, warp, sm.slots.phase_times[place] + sm.rates.phase_latency)


@st.device
def _wait_for_phase(sm: Sm, warp: i64, phase: i64) -> None:
    """Let a warp wait until a phase is complete."""
    place = warp // sm.launch.warps * sm.launch.most_phases + phase
    if sm.slots.left[place] > 0:
        sm.warps.status[warp] = i64(Status.AT_PHASE)
        sm.warps.awaited[warp] = phase
    else:
        _resume(sm, warp, sm.slots.phase_times[place] + sm.rates.phase_latency)


@st.device
def take_part(sm: Sm, warp: i64, n: i64) -> None:
    """Arrive at the phase of an issued instruction, wait for it, or copy in bulk."""
    phase, slot, now = _phase_of(sm, warp, n), warp // sm.launch.warps, sm.clock[Cycle.NOW]
    if sm.code.role[n] == Role.COPY and (phase >= 0 or sm.code.latency[n] == 0):
        when = copy(sm, warp, n)
        if phase >= 0:
            _arrive_at_phase(sm, slot, phase, when)
    elif sm.code.role[n] == Role.ARRIVE and phase >= 0:
        _arrive_at_phase(sm, slot, phase, now)
    elif sm.code.role[n] == Role.WAIT and phase >= 0:
        _wait_for_phase(sm, warp, phase)
