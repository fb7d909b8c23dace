"""Credentials of one job: the certificate that Skein's processes know each other by.

Skein keeps one in the user's home, which ends after 365 days; from then on every submit fails
to connect. A job has its own, valid for as long as it may last.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID

# Skein's channels ask for this name, whatever the host.
_COMMON_NAME = "skein-internal"
# Clocks of hosts differ.
_BACKDATE = timedelta(days=1)
_AFTER_THE_LIMIT = timedelta(days=30)


@dataclass(frozen=True, slots=True, repr=False)
class Credentials:
    """A self-signed certificate and its key, both PEM. Never shown, never on a command line."""

    certificate: bytes
    key: bytes


def make_credentials(now: datetime, limit_s: int) -> Credentials:
    """New credentials, valid from a day before `now` until 30 days after the job's limit."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _COMMON_NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + timedelta(seconds=limit_s) + _AFTER_THE_LIMIT)
        .sign(key, hashes.SHA256())
    )
    return Credentials(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
    )
