"""A job's own certificate."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from cryptography import x509
from cryptography.hazmat.primitives import serialization

from tfy.yarn.credentials import make_credentials

NOW = datetime(2026, 12, 1, 12, 0, tzinfo=timezone.utc)


def test_valid_from_a_day_before_until_thirty_days_after_the_limit() -> None:
    made = make_credentials(NOW, limit_s=6 * 3600)
    certificate = x509.load_pem_x509_certificate(made.certificate)
    assert certificate.not_valid_before_utc == NOW - timedelta(days=1)
    assert certificate.not_valid_after_utc == NOW + timedelta(hours=6, days=30)


def test_the_key_is_the_certificates_and_is_never_shown() -> None:
    made = make_credentials(NOW, limit_s=60)
    key = serialization.load_pem_private_key(made.key, password=None)
    certificate = x509.load_pem_x509_certificate(made.certificate)
    assert key.public_key() == certificate.public_key()
    assert "PRIVATE" not in repr(made)


def test_no_two_jobs_share_one() -> None:
    assert make_credentials(NOW, 60).certificate != make_credentials(NOW, 60).certificate
