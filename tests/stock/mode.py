"""How the servers of a run are guarded, and so how stock clients find their way in: `REVEILLE_STOCK` says it.

| mode | doors | what clients are given |
|---|---|---|
| `open`, unless told | as they are by default on loopback: nobody is asked | addresses |
| `keys` | ask for a key | addresses with a key in them, as those clients take it |
| `tls` | ask for a key, over TLS only; so does HTTP | the same, and `SSL_CERT_FILE` with who vouches for the server |

Clients are not changed for it: all of this is in the URLs and variables that they read anyway. HTTP asks for a key in
every mode.
"""

import functools
import os

NAMES = ("open", "keys", "tls")
NAME = os.environ.get("REVEILLE_STOCK") or "open"
assert NAME in NAMES, f"REVEILLE_STOCK={NAME}: expected one of {', '.join(NAMES)}"

ASKS_FOR_KEYS = NAME != "open"
SPEAKS_TLS = NAME == "tls"
SCHEMES = {"http": "https", "nats": "tls", "redis": "rediss"}


@functools.cache
def authority():
    """Who vouches for every server of this run, and its files, which go when the run ends."""
    # Only here: whoever borrows the harness need not have what makes certificates.
    from authority import Authority

    own = Authority()
    # For the clients within this process; OpenSSL looks at it whenever somebody asks for the default authorities.
    os.environ["SSL_CERT_FILE"] = own.certificate
    return own


def scheme(plain):
    """What a URL of this run begins with, where `plain` would stand in a run without TLS."""
    return SCHEMES[plain] if SPEAKS_TLS else plain


def server_settings():
    """What makes a server ask for what this run gives its clients."""
    settings = {"REVEILLE_DOORS_REQUIRE_KEY": "true"} if ASKS_FOR_KEYS else {}
    if SPEAKS_TLS:
        for section in ("HTTP", "DOORS"):
            settings[f"REVEILLE_{section}_TLS_CERT"] = authority().server_certificate
            settings[f"REVEILLE_{section}_TLS_KEY"] = authority().server_key
    return settings


def client_variables():
    """What a client needs in its environment beside addresses and keys."""
    return {"SSL_CERT_FILE": authority().certificate} if SPEAKS_TLS else {}


def browser_flags():
    """A browser has authorities of its own; it is told to take this one server's key, and no other."""
    return [f"--ignore-certificate-errors-spki-list={authority().server_key_hash}"] if SPEAKS_TLS else []
