"""Raw connections to a server's listeners, for whoever says something that no client would."""

import socket
import ssl

import mode

DIAL_S_MAX = 10


def dial(server, listener, seconds=DIAL_S_MAX):
    """A connection on which a client would speak first. That of the NATS door is past the server's INFO."""
    connection = socket.create_connection(server.address(listener), timeout=seconds)
    if listener == "nats-door":
        assert read_line(connection).startswith(b"INFO {")
    if not mode.SPEAKS_TLS:
        return connection
    return ssl.create_default_context().wrap_socket(connection, server_hostname=server.address(listener)[0])


def dial_nats(server, key=None):
    """A connection to the NATS door that has shown a key, if one was given or is asked for, and was let in."""
    key = key or (server.key if mode.ASKS_FOR_KEYS else "")
    connection = dial(server, "nats-door")
    connect = f'{{"verbose":false,"pedantic":false,"lang":"stranger","protocol":1,"auth_token":"{key}"}}'
    connection.sendall(f"CONNECT {connect}\r\nPING\r\n".encode())
    assert read_until(connection, b"\r\n") == b"PONG\r\n"
    return connection


def dial_resp(server):
    """A connection to the RESP door that has shown a key if one is asked for."""
    connection = dial(server, "resp-door")
    if mode.ASKS_FOR_KEYS:
        connection.sendall(f"*2\r\n$4\r\nAUTH\r\n${len(server.key)}\r\n{server.key}\r\n".encode())
        assert read_until(connection, b"\r\n") == b"+OK\r\n"
    return connection


def read_until(connection, wanted):
    received = b""
    while wanted not in received:
        chunk = connection.recv(65536)
        assert chunk, f"closed after {received!r}, without {wanted!r}"
        received += chunk
    return received


def read_line(connection):
    """Not a byte more: TLS begins behind it."""
    line = b""
    while not line.endswith(b"\r\n"):
        byte = connection.recv(1)
        assert byte, f"closed after {line!r}"
        line += byte
    return line
