"""A tiny program that is the parent of one server and ends it when its own parent is gone.

Run as a file by a bare interpreter (`python -I -S keeper.py GRACE_S PROGRAM ARG...`), so it imports nothing but what
the standard library has built in or light, and nothing of nilometer. Standard input is the life line: when it closes,
or the process that started the keeper is gone, the server gets SIGTERM, after the grace SIGKILL. Standard output tells
`started PID`, `failed REASON`, `ended exit CODE` or `ended signal NUMBER`, a line each; the server's own output goes
to the keeper's standard error. On Linux the kernel kills the server when the keeper itself dies.
It signals only the process group of the server that it started.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
LOOK_S = 1.0
"""How often it looks whether its parent still lives; the closing pipe tells sooner, unless a fork holds the pipe."""


def main(arguments: list[str]) -> int:
    """Keep one server. Returns 0 when the server was started, whatever its end, and 1 when it could not be."""
    grace_s, command = float(arguments[0]), arguments[1:]
    parent = os.getppid()
    wake = _wake_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    server, fault = _start(command)
    if fault:
        os.waitpid(server, 0)
        _say(f"failed {fault}")
        return 1
    _say(f"started {server}")
    status = _watch(server, parent, wake)
    if status is None:
        status = _end(server, wake, grace_s)
    else:
        _signal_group(server, signal.SIGKILL)
    _say(f"ended {_worded(status)}")
    return 0


_asked: list[int] = []


def _wake_on(*signals: int) -> int:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, _note)
    return reader


def _note(number: int, _frame: object) -> None:
    if number != signal.SIGCHLD:
        _asked.append(number)


def _start(command: list[str]) -> tuple[int, str]:
    reader, writer = os.pipe()
    death_signal = _death_signal()
    keeper = os.getpid()
    server = os.fork()
    if server == 0:
        try:
            _become(command, keeper, death_signal)
        except BaseException as fault:  # noqa: BLE001 - a forked child must never run on as a second keeper
            os.write(writer, (getattr(fault, "strerror", None) or repr(fault)).encode())
        os._exit(127)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return server, pipe.read().decode("utf-8", "replace")


def _become(command: list[str], keeper: int, death_signal: "ctypes._NamedFuncPointer | None") -> None:
    if death_signal is not None:
        death_signal(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != keeper:
        os._exit(127)
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.execvp(command[0], command)  # noqa: S606 - no shell is wanted


def _death_signal() -> "ctypes._NamedFuncPointer | None":
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None


def _watch(server: int, parent: int, wake: int) -> int | None:
    """Wait status of the server when it ends by itself; None when it has to be ended."""
    while True:
        readable, _, _ = select.select([0, wake], [], [], LOOK_S)
        status = _status(server)
        if status is not None:
            return status
        if _asked or os.getppid() != parent or (0 in readable and not os.read(0, 4096)):
            return None
        if wake in readable:
            _drain(wake)


def _end(server: int, wake: int, grace_s: float) -> int:
    _signal_group(server, signal.SIGTERM)
    until = time.monotonic() + grace_s
    status = _status(server)
    while status is None and (left_s := until - time.monotonic()) > 0:
        select.select([wake], [], [], min(left_s, 0.1))
        _drain(wake)
        status = _status(server)
    _signal_group(server, signal.SIGKILL)
    return os.waitpid(server, 0)[1] if status is None else status


def _status(server: int) -> int | None:
    ended, status = os.waitpid(server, os.WNOHANG)
    return status if ended else None


def _signal_group(server: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server, number)


def _drain(pipe: int) -> None:
    with contextlib.suppress(BlockingIOError):
        os.read(pipe, 4096)


def _worded(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit {code}" if code >= 0 else f"signal {-code}"


def _say(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, (line + "\n").encode())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
