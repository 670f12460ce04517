"""The TLS context of a network: always verified, with the system's authorities or the configured one."""

from __future__ import annotations

import ssl

from clients.irc.config import ConfigError, NetworkConfig


def tls_context(network: NetworkConfig) -> ssl.SSLContext | None:
    """The context, None without TLS. Raises ConfigError when a file is no certificate or key."""
    if not network.tls:
        return None
    where = f"networks.{network.name}"
    try:
        context = ssl.create_default_context(cafile=str(network.tls_ca_file) if network.tls_ca_file else None)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"{where}.tls_ca_file: {network.tls_ca_file} is no certificate: {error}") from None
    if network.client_certificate is not None:
        key = network.client_key or network.client_certificate
        try:
            context.load_cert_chain(network.client_certificate, key)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"{where}.client_certificate: it and its key cannot be used: {error}") from None
    return context
