"""A session of the Debug Adapter Protocol, as of VS Code and PyCharm, with debugpy: a breakpoint in a kernel, its variables, a step
over a barrier."""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

SCRIPT = '''\
import numpy as np
import simtbed as st


@st.kernel
def reverse(x: st.Global[st.f32], out: st.Global[st.f32]) -> None:
    """out[t] = x[63 - t]."""
    tile = st.shared(st.f32, 64)
    t = st.thread.x
    tile[t] = x[t] * 2.0
    st.sync()
    value = tile[63 - t]
    out[t] = value


st.launch(
    reverse, grid=1, block=64, args=dict(x=np.arange(64, dtype=np.float32), out=st.empty(64, st.f32)), engine="python"
)
'''
SECONDS = 60  # a time limit of each answer


class Client:
    """A client of the protocol: messages of JSON, each behind its length."""

    def __init__(self, port: int) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                self.connection = socket.create_connection(("127.0.0.1", port), SECONDS)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "debugpy does not listen"
                time.sleep(0.05)
        self.stream = self.connection.makefile("rwb")
        self.number = 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self.stream.close()
        self.connection.close()

    def send(self, command: str, **arguments: Any) -> int:
        self.number += 1
        request = {"seq": self.number, "type": "request", "command": command, "arguments": arguments}
        content = json.dumps(request).encode()
        self.stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(content), content))
        self.stream.flush()
        return self.number

    def receive(self) -> dict[str, Any]:
        length = 0
        while line := self.stream.readline().strip():
            name, _, value = line.partition(b": ")
            length = int(value) if name == b"Content-Length" else length
        assert length, "debugpy has closed the connection"
        message: dict[str, Any] = json.loads(self.stream.read(length))
        return message

    def request(self, command: str, **arguments: Any) -> Any:
        """Return the answer to a request."""
        number = self.send(command, **arguments)
        while True:
            message = self.receive()
            if message["type"] == "response" and message["request_seq"] == number:
                assert message["success"], message
                return message.get("body")
            self.events.append(message)

    def event(self, name: str) -> Any:
        """Return the next event of a name."""
        while True:
            message = self.events.pop(0) if self.events else self.receive()
            if message.get("event") == name:
                return message.get("body")

    def frame(self, thread: int) -> dict[str, Any]:
        """Return the innermost frame of a stopped thread."""
        frames: list[dict[str, Any]] = self.request("stackTrace", threadId=thread)["stackFrames"]
        return frames[0]

    def value(self, frame: dict[str, Any], expression: str) -> str:
        return str(self.request("evaluate", expression=expression, frameId=frame["id"], context="watch")["result"])


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture
def client(script: Path) -> Iterator[Client]:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    options = ("--listen", f"127.0.0.1:{port}", "--wait-for-client")
    command = [sys.executable, "-Xfrozen_modules=off", "-m", "debugpy", *options, str(script)]
    output = script.with_suffix(".txt")  # debugpy's adapter keeps it open after the script's end
    with output.open("w") as stream, subprocess.Popen(command, stdout=stream, stderr=stream) as process:
        try:
            with closing(Client(port)) as connected:
                yield connected
                assert process.wait(SECONDS) == 0, output.read_text()
        finally:
            process.kill()


def test_a_breakpoint_in_a_kernel(client: Client, script: Path) -> None:
    client.request("initialize", adapterID="test", pathFormat="path")
    client.send("attach", justMyCode=True)
    client.event("initialized")
    points = [{"line": 10, "condition": "t == 40"}]
    (point,) = client.request("setBreakpoints", source={"path": str(script)}, breakpoints=points)["breakpoints"]
    assert point["verified"]
    client.request("configurationDone")

    thread = client.event("stopped")["threadId"]
    frame = client.frame(thread)
    assert (frame["name"], frame["line"], Path(frame["source"]["path"])) == ("reverse", 10, script)
    assert client.value(frame, "t + 1") == "np.int32(41)"
    assert client.value(frame, "x.shape, tile[39]") == "((64,), np.float32(78.0))"
    (local,) = client.request("scopes", frameId=frame["id"])["scopes"][:1]
    variables = {
        v["name"]: v for v in client.request("variables", variablesReference=local["variablesReference"])["variables"]
    }
    assert {"t", "x", "out", "tile"} <= variables.keys()
    assert variables["tile"]["type"] == "ndarray"

    lines = []
    for _ in range(3):
        client.request("next", threadId=thread)
        assert client.event("stopped")["threadId"] == thread
        frame = client.frame(thread)
        lines.append((frame["name"], frame["line"], client.value(frame, "int(t)")))
    assert lines == [("reverse", 11, "40"), ("reverse", 12, "40"), ("reverse", 13, "40")]  # over the barrier
    assert client.value(frame, "value") == "np.float32(46.0)"
    client.request("continue", threadId=thread)
