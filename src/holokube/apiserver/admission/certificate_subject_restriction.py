"""CertificateSubjectRestriction: no client certificate for system:masters by way of a signing request."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from holokube.apiserver.admission.base import Attributes, Plugin, refuse

_SIGNER: Final = "kubernetes.io/kube-apiserver-client"


class CertificateSubjectRestriction(Plugin):
    resources = frozenset({("certificates.k8s.io", "certificatesigningrequests")})

    def validate(self, attributes: Attributes) -> None:
        spec = (attributes.obj or {}).get("spec") or {}
        if spec.get("signerName") != _SIGNER:
            return
        # Takes long to import, and hardly anybody sends such a request.
        from cryptography import x509
        from cryptography.x509.oid import NameOID

        try:
            request = x509.load_pem_x509_csr(base64.b64decode(spec.get("request") or ""))
            groups = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        except (ValueError, binascii.Error) as problem:
            raise refuse(attributes, f"failed to parse CSR: {problem}") from None
        if any(group.value == "system:masters" for group in groups):
            raise refuse(attributes, f"use of {_SIGNER} signer with system:masters group is not allowed")
