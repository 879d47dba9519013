"""Several replicas, one Secret, one webhook configuration: they agree, and put right what others change."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509

from holokube.base.errors import ConfigError
from holokube.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, NAMESPACES, SECRETS
from holokube.kube.pki import Authority, KeyPair
from holokube.kube.types import JsonObject
from holokube.runtime.stop import StopSignal
from holokube.sizing.certificate_keeper import CertificateKeeper, CertificateUser, FileCertificate, new_context
from holokube.sizing.certificates import CertificatePolicy, Material, ends_at
from holokube.sizing.registration import Registration, published_bundle
from holokube.testing import Cluster

REGISTRATION = Registration("sizing", service_name="webhook", service_namespace="holokube")
POLICY = CertificatePolicy(
    (REGISTRATION.server_name,), timedelta(days=90), timedelta(days=900), settle_s=60.0
)


class RecordingUser(CertificateUser):
    """Stands for a server: keeps what it was told to serve, and when the configuration vouched for it."""

    def __init__(self) -> None:
        self.served: list[KeyPair] = []

    async def listens(self, first: KeyPair, stop: StopSignal) -> bool:
        return True

    def registered(self) -> None:
        return

    def use(self, pair: KeyPair) -> None:
        if not self.served or self.served[-1] != pair:
            self.served.append(pair)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as made:
        made.run(made.client.create(NAMESPACES, {"metadata": {"name": "holokube"}}))
        yield made


def replica(cluster: Cluster) -> tuple[CertificateKeeper, RecordingUser]:
    user = RecordingUser()
    keeper = CertificateKeeper(
        cluster.clock, cluster.client, user, POLICY, REGISTRATION,
        secret_name="sizing", secret_namespace="holokube",
    )  # fmt: skip
    return keeper, user


def material(cluster: Cluster) -> Material:
    secret = cluster.run(cluster.client.get(SECRETS, "sizing", "holokube"))
    found = Material.from_secret_data(secret["data"])
    assert found is not None
    return found


def configuration(cluster: Cluster) -> JsonObject:
    return cluster.run(cluster.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "sizing"))


def test_the_first_replica_makes_everything_and_the_second_takes_it_over(cluster: Cluster) -> None:
    first, served_first = replica(cluster)
    second, served_second = replica(cluster)
    cluster.run(first.reconcile())
    cluster.run(second.reconcile())
    assert served_first.served == served_second.served == [material(cluster).serving]
    assert published_bundle(configuration(cluster)) == material(cluster).bundle
    for webhook in configuration(cluster)["webhooks"]:
        assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == material(cluster).bundle


def test_an_empty_secret_that_was_deployed_is_filled(cluster: Cluster) -> None:
    cluster.run(cluster.client.create(SECRETS, {"metadata": {"name": "sizing"}}, "holokube"))
    keeper, user = replica(cluster)
    cluster.run(keeper.reconcile())
    assert user.served == [material(cluster).serving]


def test_a_replica_that_loses_the_race_serves_what_the_winner_made(cluster: Cluster) -> None:
    first, _ = replica(cluster)
    second, user = replica(cluster)
    look = second._get_secret
    raced = False

    async def late() -> JsonObject | None:
        nonlocal raced
        found = await look()
        if not raced:
            raced = True
            await first.reconcile()
        return found

    second._get_secret = late  # type: ignore[method-assign]  # the race cannot be had otherwise
    cluster.run(second.reconcile())
    assert user.served == [material(cluster).serving]


def test_a_configuration_that_somebody_changed_or_deleted_is_put_right(cluster: Cluster) -> None:
    keeper, _ = replica(cluster)
    cluster.run(keeper.reconcile())
    good = configuration(cluster)["webhooks"]
    changed = configuration(cluster)
    changed["webhooks"] = [{**changed["webhooks"][0], "failurePolicy": "Fail"}]
    cluster.run(cluster.client.update(MUTATING_WEBHOOK_CONFIGURATIONS, changed))
    cluster.run(keeper.reconcile())
    assert configuration(cluster)["webhooks"] == good
    cluster.run(cluster.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, "sizing"))
    cluster.run(keeper.reconcile())
    assert configuration(cluster)["webhooks"] == good


def test_nothing_is_written_while_nothing_changes(cluster: Cluster) -> None:
    keeper, _ = replica(cluster)
    cluster.run(keeper.reconcile())
    revision = cluster.store.revision
    for _ in range(5):
        cluster.run(keeper.reconcile())
    assert cluster.store.revision == revision


def vouched(cluster: Cluster, pair: KeyPair) -> bool:
    serving = x509.load_pem_x509_certificate(pair.cert_pem)
    for authority in x509.load_pem_x509_certificates(published_bundle(configuration(cluster))):
        try:
            serving.verify_directly_issued_by(authority)
        except Exception:  # the library raises several kinds
            continue
        return True
    return False


def test_two_replicas_renew_everything_over_years_and_are_vouched_for_at_every_look(cluster: Cluster) -> None:
    """Each looks on its own; both serve different certificates for a while, and both are good."""
    replicas = [replica(cluster) for _ in range(2)]
    authorities, certificates = set(), set()
    for _ in range(130):
        for keeper, user in replicas:
            cluster.run(keeper.reconcile())
            for _, other in replicas:
                if other.served:
                    assert vouched(cluster, other.served[-1])
                    assert ends_at(other.served[-1].cert_pem) > cluster.clock.now()
            certificates.add(user.served[-1].cert_pem)
            cluster.pass_time(70.0)
        authorities.add(material(cluster).authority.cert_pem)
        cluster.pass_time(timedelta(days=13).total_seconds())
    assert len(authorities) >= 3 and len(certificates) >= 20


def test_the_component_looks_again_by_itself(cluster: Cluster) -> None:
    keeper, user = replica(cluster)
    stop = StopSignal()

    async def live() -> None:
        import asyncio

        running = asyncio.create_task(keeper.run(stop))
        await cluster.clock.sleep(60.0)
        await cluster.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, "sizing")
        await cluster.clock.sleep(11.0)
        await cluster.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "sizing")
        stop.set()
        await running

    cluster.run(live())
    assert len(user.served) == 1


def test_a_certificate_of_ones_own_is_read_again_when_it_changes(cluster: Cluster, tmp_path: Path) -> None:
    authority = Authority.create("mine", cluster.clock.now())
    cert, key, ca = (tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt"))

    def write() -> KeyPair:
        pair = authority.issue_server([REGISTRATION.server_name])
        cert.write_bytes(pair.cert_pem)
        key.write_bytes(pair.key_pem)
        return pair

    ca.write_bytes(authority.cert_pem)
    first = write()
    user = RecordingUser()
    files = FileCertificate(
        cluster.clock, cluster.client, user, REGISTRATION, cert_file=cert, key_file=key, ca_file=ca
    )
    cluster.run(files.reconcile())
    second = write()
    cluster.run(files.reconcile())
    assert user.served == [first, second]
    assert published_bundle(configuration(cluster)) == authority.cert_pem
    cert.unlink()
    with pytest.raises(ConfigError, match=r"tls\.crt"):
        cluster.run(files.reconcile())


def test_a_context_begins_without_a_certificate_and_with_modern_tls() -> None:
    context = new_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
