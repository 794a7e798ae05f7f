"""Backends that misbehave: what each does, as source, and what is to come of it."""

from dataclasses import dataclass

__all__ = ["AT_IMPORT", "BODIES", "CALLS", "IN_A_CALL", "Came", "module"]

CALLS = 5  # so many calls are made; a body runs in the third of a process

_MODULE = """\
import atexit, builtins, ctypes, gc, os, signal, subprocess, sys, tempfile, threading, time, warnings
import numpy as np
import torch
{at_import}

class Backend:
    profile = "onnx"
    calls = 0
    kept = None

    def __init__(self):
        {in_constructor}

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        Backend.calls += 1
        if Backend.kept is not None:
            Backend.kept()
            Backend.kept = None
        codes = torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int8)
        {in_a_call}
        return codes
"""


def module(at_import: str = "", in_constructor: str = "pass", in_a_call: str = "") -> str:
    """The module with a right backend that does this too, where and when it is said."""
    body = f"if self.calls == 3:\n{_indented(in_a_call, 12)}" if in_a_call else ""
    return _MODULE.format(at_import=at_import, in_constructor=_indented(in_constructor, 8).lstrip(), in_a_call=body)


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line for line in text.splitlines())


@dataclass(frozen=True)
class Came:
    """What comes of the call at ``at``: patterns of what its answer says; all other calls are answered rightly."""

    kind: str = "returned"
    message: str = ""
    error: str = ""
    fault: str = ""
    value: str = ""  # of its repr, where it is none of the right one
    printed: str = ""
    at: int = 2
    repeats: int = 1


_FINE = Came()
_SIGSEGV, _SIGABRT, _SIGFPE = (
    rf"signal {n} \({name}\)" for n, name in ((11, "SIGSEGV"), (6, "SIGABRT"), (8, "SIGFPE"))
)

#: By name: the source, and how the process ends, or what the error says.
BODIES: dict[str, tuple[str, str]] = {
    "hang": ("time.sleep(1000)", "timed out after 2 s"),
    "sys.exit(0)": ("sys.exit(0)", "SystemExit: 0"),
    "sys.exit(5)": ("sys.exit(5)", "SystemExit: 5"),
    "os._exit(0)": ("os._exit(0)", "exit status 0"),
    "os._exit(1)": ("os._exit(1)", "exit status 1"),
    "segfault": ("ctypes.string_at(0)", _SIGSEGV),
    "abort": ("os.abort()", _SIGABRT),
    "floating-point exception": ("os.kill(os.getpid(), signal.SIGFPE)", _SIGFPE),
    "raises": ("raise RuntimeError('no device')", "RuntimeError: no device"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "endless recursion": ("def f(): f()\nf()", "RecursionError"),
    "memory bomb": ("a = [bytearray(1 << 26) for _ in range(99)]", "MemoryError"),
    "error without words": (
        "class E(Exception):\n    def __str__(self): raise ValueError('no words')\nraise E",
        "fails: E$|does not import: E$",
    ),
    "says the reason before it aborts": ("os.write(2, b'no such board\\n'); os.abort()", f"{_SIGABRT}: no such board"),
}

#: What a module or a constructor may do, and is loaded all the same.
AT_IMPORT: dict[str, str] = {
    "fork": "os.fork()",
    "100 MB printed": "print('a' * 100_000_000)",
    "no standard streams": "os.closerange(0, 3)",
    "stdout None": "sys.stdout = sys.stderr = None",
    "default dtype": "torch.set_default_dtype(torch.float64)",
    "recursion limit": "sys.setrecursionlimit(60)",
    "folder": "os.chdir('/')",
    "thread": "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "atexit": "atexit.register(time.sleep, 1000)",
}

_CLOSE = "import socket\nfor fd in range(3, 64):\n    try: {}\n    except OSError: pass"
_LIAR = """\
class Liar(np.ndarray):
    def __ne__(self, other): return np.zeros(self.shape, bool)
    def __eq__(self, other): return np.ones(self.shape, bool)
return (codes + 1).numpy().view(Liar)"""
_REFUSING = """\
class Refusing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, *args, **kwargs): raise RuntimeError("no function")
return codes.as_subclass(Refusing)"""
_THREAD = """\
def later(codes=codes):
    while Backend.calls < 4: time.sleep(0.001)
    codes.zero_().sub_(128)
thread = threading.Thread(target=later); thread.start()
Backend.kept = thread.join"""

#: By name: what the third call of the process does, and what comes of it.
IN_A_CALL: dict[str, tuple[str, Came]] = {
    # The process ends, or is ended.
    "hang": ("time.sleep(1000)", Came("ended", "timed out after 1 s")),
    "hang and hold every lock": ("ctypes.PyDLL(None).sleep(1000)", Came("ended", "timed out after 1 s")),
    "busy": ("while True: pass", Came("ended", "timed out after 1 s")),
    "sleep 5 s": ("time.sleep(5)", Came("ended", "timed out after 1 s")),
    "stop": ("os.kill(os.getpid(), signal.SIGSTOP)", Came("ended", "timed out after 1 s")),
    "segfault": ("ctypes.string_at(0)", Came("ended", _SIGSEGV)),
    "abort": ("os.abort()", Came("ended", _SIGABRT)),
    "floating-point exception": ("os.kill(os.getpid(), signal.SIGFPE)", Came("ended", _SIGFPE)),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM)", Came("ended", "signal 15")),
    "SIGKILL": ("os.kill(os.getpid(), signal.SIGKILL)", Came("ended", "signal 9 .*as when memory runs out")),
    "os._exit(0)": ("os._exit(0)", Came("ended", "exit status 0")),
    "os._exit(1)": ("os._exit(1)", Came("ended", "exit status 1")),
    "alarm": ("signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(1)", Came("ended", r"signal 14 \(SIGALRM\)")),
    "last words": ("os.write(2, b'board lost\\n'); os.abort()", Came("ended", _SIGABRT, printed="board lost")),
    "execute another": ("os.execv('/bin/true', ['true'])", Came("ended", "exit status 0")),
    "all descriptors closed": ("os.closerange(3, 1000)", Came("ended", "exit status 1|the channel broke")),
    "noise in the channel": (
        _CLOSE.format("socket.socket(fileno=os.dup(fd)).sendall(b'\\xff' * 99)"),
        Came("ended", "the channel broke: a frame"),
    ),
    "a frame of nothing": (
        _CLOSE.format("socket.socket(fileno=os.dup(fd)).sendall(b'\\2' + bytes(7) + b'{}')"),
        Came("ended", "the channel broke: "),
    ),
    "supervisor killed": (
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(9)",
        Came("ended", "its supervisor ended"),
    ),
    "built-in functions replaced": ("builtins.len = builtins.isinstance = None", Came("ended", "exit status 1")),
    # It raises.
    "sys.exit(0)": ("sys.exit(0)", Came("raised", error="SystemExit")),
    "interrupt": ("raise KeyboardInterrupt", Came("raised", error="KeyboardInterrupt")),
    "generator's exit": ("raise GeneratorExit", Came("raised", error="GeneratorExit")),
    "endless recursion": ("def f(): f()\nf()", Came("raised", error="RecursionError")),
    "memory bomb": ("a = [bytearray(1 << 26) for _ in range(99)]", Came("raised", error="MemoryError")),
    "tensor bomb": ("a = [torch.ones(1 << 24) for _ in range(99)]", Came("raised", error="RuntimeError")),
    "error without words": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        Came("raised", "cannot be had: ValueError", "^E$"),
    ),
    "error that exits when it speaks": (
        "class E(Exception):\n    def __str__(self): sys.exit(0)\nraise E",
        Came("raised", "cannot be had: SystemExit", "^E$"),
    ),
    "message of 3 MB": ("raise RuntimeError('A' * 3_000_000)", Came("raised", "^A{16384}$", "RuntimeError")),
    "half a character": ("raise RuntimeError('\\udc80')", Came("raised", "\udc80", "RuntimeError")),
    "unsupported": (
        "from halfeven.conformance import Unsupported\nraise Unsupported('not here')",
        Came("unsupported", "not here"),
    ),
    # It leaves the process changed.
    "default dtype": ("torch.set_default_dtype(torch.float64)", Came(fault="default dtype")),
    "default device": ("torch.set_default_device('meta')", Came(fault="default device")),
    "grad mode": ("torch.set_grad_enabled(False)", Came(fault="changed the process: the grad mode")),
    "inference mode": ("Backend.mode = torch.inference_mode(); Backend.mode.__enter__()", Came(fault="inference mode")),
    "autocast": ("torch.set_autocast_enabled('cpu', True)", Came(fault="autocast")),
    "matrix products": ("torch.set_float32_matmul_precision('medium')", Came(fault="matrix products")),
    "deterministic": ("torch.use_deterministic_algorithms(True)", Came(fault="deterministic")),
    "threads": ("torch.set_num_threads(3)", Came(fault="number of threads")),
    "rounding mode": ("ctypes.CDLL(None).fesetround(0x400)", Came(fault="rounding mode")),
    "flush-to-zero": ("torch.set_flush_denormal(True)", Came(fault="flush-to-zero")),
    "NumPy's functions": ("np.rint = np.floor", Came(fault="functions of NumPy")),
    "NumPy's functions deleted": ("del np.rint", Came(fault="functions of NumPy")),
    "recursion limit": ("sys.setrecursionlimit(60)", Came(fault="recursion limit")),
    "recursion limit, and an error": (
        "sys.setrecursionlimit(60)\nraise RuntimeError('deep')",
        Came("raised", "deep", "RuntimeError", "recursion limit"),
    ),
    "errors of NumPy": ("np.seterr(all='raise')", Came(fault="changed the process: NumPy's error handling")),
    "timer": ("signal.setitimer(signal.ITIMER_REAL, 1000)", Came(fault="timer")),
    "folder removed": ("at = tempfile.mkdtemp(); os.chdir(at); os.rmdir(at)", _FINE),
    "environment": ("os.environ.clear()", _FINE),
    "warnings": ("warnings.simplefilter('error')", _FINE),
    "signals": ("[signal.signal(s, signal.SIG_IGN) for s in (2, 13, 15, 17)]", _FINE),
    "garbage": ("gc.callbacks.append(lambda *_: 1 / 0); gc.collect()", _FINE),
    "modules": ("del sys.modules['numpy']; sys.modules['torch'] = sys.modules['json'] = None", _FINE),
    "fork": ("os.fork()", _FINE),
    "fork, and leave": ("os._exit(0) if os.fork() == 0 else None", _FINE),
    "thread": ("threading.Thread(target=time.sleep, args=(1000,)).start()", _FINE),
    "daemon thread": ("threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()", _FINE),
    "atexit": ("atexit.register(time.sleep, 1000)", _FINE),
    # It writes.
    "100 MB printed": ("print('a' * 100_000_000)", Came(printed="^a{65536}\n.the rest was not kept")),
    "20 MB to descriptor 1": ("os.write(1, b'b' * 20_000_000)", Came(printed="^b{65536}\n")),
    "C's own buffer": ("ctypes.CDLL(None).puts(b'from C')", Came(printed="^from C\n$")),
    "standard streams closed": ("os.closerange(0, 3)", _FINE),
    "stdout None": ("sys.stdout = sys.stderr = None", _FINE),
    "stdout closed": ("sys.stdout.close()", _FINE),
    "input asked for": ("assert sys.stdin.read() == '' == os.read(0, 9).decode()", _FINE),
    # What it returns is nothing, or something else.
    "None": ("return None", Came(value="^None$")),
    "a text": ("return 'codes'", Came(value="codes")),
    "a generator": ("return (c for c in codes)", Came(value="Other.*generator")),
    "an object": ("return object()", Came(value="Other.*object")),
    "an object without words": (
        "class O:\n    def __repr__(self): raise KeyError\nreturn O()",
        Came(value="Other.*KeyError"),
    ),
    "complex numbers": ("return codes.to(torch.complex64)", Came(value="complex64")),
    "another shape": ("return codes[:3]", Came(value=r"array\(\[-?\d+, +-?\d+, +-?\d+\], dtype=int8")),
    "a sparse tensor": ("return codes.to_sparse()", Came(fault="wrong result", value="None")),
    "a meta tensor": ("return codes.to('meta')", Came(fault="wrong result", value="None")),
    "a structured array": ("return np.zeros(8, 'i4,i4')", Came(fault="wrong result: a ndarray", value="None")),
    "objects": ("return np.array([None] * 8)", Came(fault="wrong result: a ndarray", value="None")),
    "texts": ("return np.array(['a'] * 8)", Came(fault="wrong result: a ndarray", value="None")),
    "another byte order": ("return codes.numpy().astype('>i2')", Came(fault=r"wrong result.*>i2", value="None")),
    "a masked array": (
        "return np.ma.masked_array(codes.numpy(), True)",
        Came(fault="wrong result: a MaskedArray", value="None"),
    ),
    "an array that lies": (_LIAR, Came(value="array")),
    "a tensor that refuses": (_REFUSING, Came(fault="wrong result: no function", value="None")),
    "a list in itself": ("codes = []; codes.append(codes)", Came(fault="wrong result: nested", value="None")),
    "an endless number": ("return 10 ** 1_000_000", Came(fault="cannot be handed over", value="None")),
    # It writes where it may not.
    "argument": ("x.zero_()", Came(fault="mutated input")),
    "parameter": ("scale.fill_(2)", Came(fault="mutated input")),
    "form of an argument": ("x.unsqueeze_(0)", Came(fault="mutated input")),
    "memory behind an argument": ("ctypes.memset(x.data_ptr() + x.nbytes, 0, 4)", Came(fault="mutated input")),
    "argument of an earlier call": (
        "Backend.kept = x.zero_",
        Came(fault="argument of an earlier call", at=3),
    ),
    "result of an earlier call": ("Backend.kept = codes.zero_", Came(fault="stale output", at=3)),
    "result, by a thread": (_THREAD, Came(fault="stale output", at=3)),
    "another answer each time": (
        "Backend.calls = 2\nBackend.turn = 1 + getattr(Backend, 'turn', 0)\nreturn codes + Backend.turn",
        Came(fault="not deterministic", value="int8", repeats=2),
    ),
}
