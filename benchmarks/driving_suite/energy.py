"""What a GPU has used, by NVIDIA's management library, opened when asked: nothing here needs it."""

from __future__ import annotations

import ctypes
import re


class Meter:
    """Reads the energy counter of one GPU, found by its identifier, since this library counts GPUs that CUDA does not
    show. `refused` is why it cannot, in a sentence; empty where it can."""

    def __init__(self, uuid: str | None) -> None:
        self.refused = ""
        self.driver = ""
        try:
            self._open(uuid)
        except (OSError, AttributeError) as error:
            self.refused = f"energy is not measured: NVIDIA's management library (libnvidia-ml.so.1) does not open: {error}"

    def _open(self, uuid: str | None) -> None:
        if not uuid:
            raise OSError("there is no GPU")
        self._library = ctypes.CDLL("libnvidia-ml.so.1")
        self._check(self._library.nvmlInit_v2(), "nvmlInit")
        version = ctypes.create_string_buffer(80)
        self._check(self._library.nvmlSystemGetDriverVersion(version, 80), "nvmlSystemGetDriverVersion")
        self.driver = version.value.decode()
        self._device = ctypes.c_void_p()
        name = uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"
        found = self._library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(self._device))
        self._check(found, f"nvmlDeviceGetHandleByUUID({name})")
        self.millijoules()

    def _check(self, code: int, what: str) -> None:
        if code != 0:
            raise OSError(f"{what} returns {code}")

    def millijoules(self) -> int:
        """Since the driver was loaded. The counter moves some ten times a second."""
        value = ctypes.c_ulonglong()
        self._check(
            self._library.nvmlDeviceGetTotalEnergyConsumption(self._device, ctypes.byref(value)),
            "nvmlDeviceGetTotalEnergyConsumption",
        )
        return value.value


def kernel_driver() -> str:
    """The version of the loaded driver by /proc; empty where there is none."""
    try:
        with open("/proc/driver/nvidia/version", encoding="utf-8") as file:
            found = re.search(r"\b(\d+\.\d+(?:\.\d+)?)\b", file.readline())
    except OSError:
        return ""
    return found[1] if found else ""
