"""A process that speaks the control plane's protocol and is not Tandem's own: it joins with what a test has it say.

The protocol is written down in runtime/launch/handshake.h and message.h; this is a second implementation of it.
"""
import hashlib
import hmac
import os
import socket
import struct
import time

NAME = b"TANDEM\0\2"
MAGIC = 0x4D444E54
HELLO, FAILURE, ACCEPTED = 0, 12, 8


def read(connection, count):
    data = b""
    while len(data) < count:
        part = connection.recv(count - len(data))
        if not part:
            raise EOFError(f"the peer closed after {len(data)} of {count} bytes")
        data += part
    return data


def prove(connection, secret):
    """The process' side of the handshake. Returns whether rank 0 has proven itself in turn."""
    challenge = read(connection, 40)
    assert challenge[:8] == NAME, challenge[:8]
    own = os.urandom(32)
    proof = hmac.new(secret, b"process" + challenge[8:] + own, hashlib.sha256).digest()
    connection.sendall(NAME + own + proof)
    expected = hmac.new(secret, b"rank 0" + own + challenge[8:], hashlib.sha256).digest()
    return hmac.compare_digest(read(connection, 32), expected)


def text(value):
    return struct.pack("<Q", len(value)) + value


def hello(version, session, size, rank, host):
    return text(version) + text(session) + struct.pack("<QQ", size, rank) + text(host)


def message(kind, payload):
    return struct.pack("<IIQ", MAGIC, kind, len(payload)) + payload


def join(port, secret, payload, limit):
    """Says hello, and returns the sentence with which rank 0 ends the run."""
    deadline = time.monotonic() + limit
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=limit)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    with connection:
        if not prove(connection, secret):
            raise AssertionError("rank 0 did not prove itself")
        connection.sendall(message(HELLO, payload))
        while True:
            magic, kind, length = struct.unpack("<IIQ", read(connection, 16))
            assert magic == MAGIC
            said = read(connection, length)
            if kind == FAILURE:
                return said.decode()
