"""A certificate authority for one run, and a certificate of it for servers on this machine."""

import base64
import datetime
import hashlib
import ipaddress
import pathlib
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

VALID = datetime.timedelta(days=1)
CLOCK_SKEW = datetime.timedelta(hours=1)
NAMES = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]


class Authority:
    """`certificate`, `server_certificate` and `server_key` are paths of PEM files."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="authority-")
        key, name = new_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests of one run")])
        builder = (
            certificate_of(key, name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage(key_cert_sign=True), critical=True)
        )
        self.certificate = self.keep("authority.pem", pem(builder.sign(key, hashes.SHA256())))

        server_key, server_name = new_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
        builder = (
            certificate_of(server_key, server_name, name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(NAMES), critical=False)
            .add_extension(usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([x509.ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        )
        self.server_certificate = self.keep("server.pem", pem(builder.sign(key, hashes.SHA256())))
        self.server_key = self.keep("server.key", private_pem(server_key))
        self.server_key_hash = base64.b64encode(hashlib.sha256(public_der(server_key)).digest()).decode()

    def keep(self, name, data):
        path = pathlib.Path(self.folder.name) / name
        path.write_bytes(data)
        return str(path)


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def certificate_of(key, name, issuer_name, issuer_key):
    """What both certificates have."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + VALID)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )


def usage(digital_signature=False, key_cert_sign=False):
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        crl_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def pem(certificate):
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(key):
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_der(key):
    return key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
