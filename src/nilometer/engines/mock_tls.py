"""Certificates for the mock server: given files, or a throw-away one made with the openssl program."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

from nilometer.core.errors import EngineError, SpecError


def context(certificate: Path, key: Path) -> ssl.SSLContext:
    """A server context of TLS 1.2 or newer; refuses unreadable files: slug `mock_certificate`."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        made.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as fault:
        raise SpecError("mock_certificate", file=str(certificate), detail=str(fault)) from None
    return made


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Certificate and key for localhost and 127.0.0.1, made in `folder`; slugs `openssl_missing`, `openssl_failed`."""
    program = shutil.which("openssl")
    if program is None:
        raise EngineError("openssl_missing")
    certificate, key = folder / "mock-cert.pem", folder / "mock-key.pem"
    command = [program, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "30", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    if done.returncode != 0:
        detail = done.stderr.decode(errors="replace").strip().splitlines()
        raise EngineError("openssl_failed", detail=detail[-1] if detail else str(done.returncode))
    return certificate, key
