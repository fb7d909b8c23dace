"""A gRPC channel to one of Skein's servers, set up once for both sides."""

from __future__ import annotations

import grpc

# Skein's certificates name no host.
_NAME = "skein-internal"
_OPTIONS = (
    ("grpc.ssl_target_name_override", _NAME),
    ("grpc.default_authority", _NAME),
    # `http_proxy` would be obeyed inside the cluster too (dask-yarn#22, #114).
    ("grpc.enable_http_proxy", 0),
    # By default 4 MiB, which the records of hundreds of tasks may not fit into.
    ("grpc.max_receive_message_length", 64 << 20),
    # By default up to 120 s: longer than anyone here waits for an answer.
    ("grpc.max_reconnect_backoff_ms", 2000),
)


def make_channel(address: str, certificate: bytes, key: bytes) -> grpc.Channel:
    """A channel to `host:port`, both ends known by one certificate and its key (PEM)."""
    credentials = grpc.ssl_channel_credentials(certificate, key, certificate)
    return grpc.secure_channel(address, credentials, list(_OPTIONS))
