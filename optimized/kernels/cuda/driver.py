"""The driver of the GPU, by its C interface: loaded when it is first asked for, so that nothing here needs a GPU."""

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

__all__ = ["LIBRARY", "Driver", "loaded", "why_missing"]

#: What is loaded: the driver installs it, no package does.
LIBRARY = "libcuda.so.1"
_POINTER = ctypes.POINTER(ctypes.c_void_p)
_UINT = ctypes.c_uint
# Every function returns a status, 0 where it went well.
_FUNCTIONS: dict[str, tuple[type, ...]] = {
    "cuInit": (_UINT,),
    "cuGetErrorName": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuGetErrorString": (ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)),
    "cuDeviceGet": (ctypes.POINTER(ctypes.c_int), ctypes.c_int),
    "cuDevicePrimaryCtxRetain": (_POINTER, ctypes.c_int),
    "cuCtxPushCurrent_v2": (ctypes.c_void_p,),
    "cuCtxPopCurrent_v2": (_POINTER,),
    "cuStreamIsCapturing": (ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)),
    "cuModuleLoadData": (_POINTER, ctypes.c_char_p),
    "cuModuleGetFunction": (_POINTER, ctypes.c_void_p, ctypes.c_char_p),
    "cuLaunchKernel": (ctypes.c_void_p, *(_UINT,) * 7, ctypes.c_void_p, _POINTER, _POINTER),
}


class Driver:
    """The functions of the driver that a launch needs, on the contexts that torch uses: the primary ones.

    A device is named by its number, as torch and the driver count those that are visible.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        """Begin to use a driver that was loaded.

        Raises:
            RuntimeError: it has not all functions, or does not start, as where there is no GPU.
        """
        try:
            for name, types in _FUNCTIONS.items():
                function = getattr(library, name)
                function.argtypes, function.restype = types, ctypes.c_int
        except AttributeError as error:
            msg = f"the driver of the GPU is too old: {error}"
            raise RuntimeError(msg) from None
        self._library = library
        self._contexts: dict[int, ctypes.c_void_p] = {}
        self._checked("to start", library.cuInit(0))

    def capturing(self, stream: int) -> bool:
        """Whether what is launched on a stream goes into a graph instead of being run."""
        status = ctypes.c_int()
        self._checked("to ask a stream", self._library.cuStreamIsCapturing(stream, ctypes.byref(status)))
        return status.value != 0

    def functions(self, device: int, image: bytes, names: Sequence[str]) -> dict[str, int]:
        """The kernels ``names`` of machine code or PTX, loaded for a device, for as long as the process lives."""
        with self._current(device):
            module = ctypes.c_void_p()
            self._checked("to load the kernels", self._library.cuModuleLoadData(ctypes.byref(module), image))
            return {name: self._function(module, name) for name in names}

    def launch(
        self,
        device: int,
        function: int,
        grid: tuple[int, int, int],
        threads: tuple[int, int, int],
        stream: int,
        job: ctypes.Structure,
    ) -> None:
        """Start a kernel that takes one struct, and wait for nothing.

        Raises:
            RuntimeError: the driver refuses, or something that was started before has failed.
        """
        given = (ctypes.c_void_p * 1)(ctypes.addressof(job))
        self._push(device)  # not as below: that costs a call a tenth of its time
        try:
            status = self._library.cuLaunchKernel(function, *grid, *threads, 0, stream, given, None)
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))
        self._checked("to launch a kernel", status)

    def _function(self, module: ctypes.c_void_p, name: str) -> int:
        found = ctypes.c_void_p()
        status = self._library.cuModuleGetFunction(ctypes.byref(found), module, name.encode())
        self._checked(f"to find the kernel {name}", status)
        assert found.value is not None
        return found.value

    @contextmanager
    def _current(self, device: int) -> Iterator[None]:
        """The context of a device while this lasts, and after that the one that was there."""
        self._push(device)
        try:
            yield
        finally:
            self._library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p()))

    def _push(self, device: int) -> None:
        context = self._contexts.get(device) or self._context(device)
        self._checked("to choose a device", self._library.cuCtxPushCurrent_v2(context))

    def _context(self, device: int) -> ctypes.c_void_p:
        number, context = ctypes.c_int(), ctypes.c_void_p()
        self._checked(f"to find device {device}", self._library.cuDeviceGet(ctypes.byref(number), device))
        # Torch holds it as well: it is made here only where torch has not touched the device.
        status = self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), number)
        self._checked(f"to use device {device}", status)
        self._contexts[device] = context
        return context

    def _checked(self, what: str, status: int) -> None:
        if not status:
            return
        name, text = ctypes.c_char_p(), ctypes.c_char_p()
        self._library.cuGetErrorName(status, ctypes.byref(name))
        self._library.cuGetErrorString(status, ctypes.byref(text))
        words = ": ".join(part.value.decode() for part in (name, text) if part.value) or f"status {status}"
        msg = f"the driver of the GPU was asked {what}, and says {words}"
        raise RuntimeError(msg)


def why_missing() -> str:
    """Why there is no driver, "" where there is one."""
    driver, why = _found()
    return "" if driver else why


def loaded() -> Driver:
    """The driver of this machine.

    Raises:
        RuntimeError: there is none, or it does not start.
    """
    driver, why = _found()
    if driver is None:
        raise RuntimeError(why)
    return driver


@cache
def _found() -> tuple[Driver | None, str]:
    """The driver, or None and why not."""
    try:
        return Driver(ctypes.CDLL(LIBRARY)), ""
    except OSError as error:
        return None, f"there is no driver of a GPU ({error})"
    except RuntimeError as error:
        return None, str(error)
