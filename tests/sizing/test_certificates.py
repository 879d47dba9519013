"""When certificates are made, renewed and handed over, and that the bundle always vouches for what is served."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from cryptography import x509

from holokube.sizing.certificates import CertificatePolicy, Material, decide, ends_at, next_look_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POLICY = CertificatePolicy(
    ("sizing.holokube.svc",), timedelta(days=90), timedelta(days=900), settle_s=60.0
)


def fresh() -> Material:
    return decide(None, NOW, POLICY, published_for_s=None)


def is_vouched_for(material: Material) -> bool:
    serving = x509.load_pem_x509_certificate(material.serving.cert_pem)
    for authority in x509.load_pem_x509_certificates(material.bundle):
        try:
            serving.verify_directly_issued_by(authority)
        except Exception:  # the library raises several kinds
            continue
        return True
    return False


def test_the_first_look_makes_an_authority_and_a_certificate() -> None:
    material = fresh()
    assert is_vouched_for(material) and material.next_authority is None
    assert ends_at(material.serving.cert_pem) == NOW + timedelta(days=90)
    certificate = x509.load_pem_x509_certificate(material.serving.cert_pem)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["sizing.holokube.svc"]


def test_nothing_is_done_while_everything_is_good() -> None:
    material = fresh()
    assert decide(material, NOW + timedelta(days=59), POLICY, published_for_s=1e6) is material


def test_a_certificate_is_renewed_when_a_third_of_its_life_is_left() -> None:
    material = fresh()
    renewed = decide(material, NOW + timedelta(days=61), POLICY, published_for_s=1e6)
    assert renewed.serving != material.serving and renewed.authority == material.authority
    assert renewed.bundle == material.bundle and is_vouched_for(renewed)


def test_an_address_goes_into_the_certificate_as_one() -> None:
    policy = CertificatePolicy(("127.0.0.1",))
    material = decide(None, NOW, policy, published_for_s=None)
    assert decide(material, NOW, policy, published_for_s=None) is material


def test_a_certificate_for_other_names_is_replaced() -> None:
    material = fresh()
    moved = CertificatePolicy(("elsewhere.holokube.svc",), POLICY.lifetime, POLICY.authority_lifetime)
    assert decide(material, NOW, moved, published_for_s=None).serving != material.serving


def test_an_authority_is_handed_over_in_two_steps() -> None:
    material = fresh()
    due = NOW + timedelta(days=601)
    announced = decide(material, due, POLICY, published_for_s=1e6)
    assert announced.next_authority is not None and announced.authority == material.authority
    assert is_vouched_for(announced)
    # The bundle must be published, for long enough, before anybody serves what only the next one vouches for.
    assert decide(announced, due, POLICY, published_for_s=None) is announced
    assert decide(announced, due, POLICY, published_for_s=59.0) is announced
    promoted = decide(announced, due, POLICY, published_for_s=60.0)
    assert promoted.authority == announced.next_authority and promoted.next_authority is None
    assert material.authority.cert_pem in promoted.retired and is_vouched_for(promoted)
    # Those who still serve the certificate of before are vouched for as well.
    assert is_vouched_for(Material(promoted.authority, announced.serving, None, promoted.retired))


def test_a_retired_authority_leaves_the_bundle_when_it_has_ended() -> None:
    material = fresh()
    due = NOW + timedelta(days=601)
    promoted = decide(decide(material, due, POLICY, published_for_s=1.0), due, POLICY, published_for_s=60.0)
    later = decide(promoted, NOW + timedelta(days=901), POLICY, published_for_s=1e6)
    assert later.retired == () and is_vouched_for(later)


def test_at_every_moment_of_many_years_the_certificate_is_valid_and_vouched_for() -> None:
    material, now, published = fresh(), NOW, b""
    since = NOW
    for _ in range(400):
        for_s = (now - since).total_seconds() if published == material.bundle else None
        material = decide(material, now, POLICY, published_for_s=for_s)
        if published != material.bundle:
            # Before anything new is served, the bundle of before must vouch for it or be replaced first.
            published, since = material.bundle, now
        assert is_vouched_for(material) and ends_at(material.serving.cert_pem) > now
        assert ends_at(material.authority.cert_pem) > now
        now += timedelta(days=11)


def test_a_secret_gives_back_what_was_put_into_it() -> None:
    material = decide(fresh(), NOW + timedelta(days=601), POLICY, published_for_s=None)
    assert Material.from_secret_data(material.to_secret_data()) == material


def test_a_secret_that_is_empty_or_broken_is_made_anew() -> None:
    data = fresh().to_secret_data()
    keyless = {name: pem for name, pem in data.items() if name != "ca.key"}
    for broken in (None, {}, {"ca.crt": "!"}, {**data, "tls.crt": "AAAA"}, keyless):
        assert Material.from_secret_data(broken) is None
    assert is_vouched_for(decide(None, NOW, POLICY, published_for_s=None))


def test_an_authority_that_has_ended_is_made_anew() -> None:
    material = fresh()
    anew = decide(material, NOW + timedelta(days=1000), POLICY, published_for_s=1e6)
    assert anew.authority != material.authority and is_vouched_for(anew)


def test_a_key_that_belongs_to_another_authority_is_not_used() -> None:
    ours, other = fresh(), fresh()
    mixed = Material(type(ours.authority)(ours.authority.cert_pem, other.authority.key_pem), ours.serving)
    assert decide(mixed, NOW, POLICY, published_for_s=None).authority not in (ours.authority, other.authority)


def test_the_next_look_is_when_something_is_due() -> None:
    material = fresh()
    assert next_look_s(material, NOW, POLICY, at_most_s=10.0) == 10.0
    assert next_look_s(material, NOW, POLICY, at_most_s=1e9) == timedelta(days=60).total_seconds()
    announced = decide(material, NOW + timedelta(days=601), POLICY, published_for_s=None)
    assert next_look_s(announced, NOW + timedelta(days=601), POLICY, at_most_s=1e9) == 60.0
