"""Examples of documents of clouds, static IPs and zones: every field that their readers ask for."""

from __future__ import annotations

from typing import Any

from tests.hostile.authority import AUTHORITY

CLOUD_EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "cloud_account": (
        "CloudAccount",
        {"cloud": "aws", "credentials": "env:AWS_PROD", "endpoint_url": "https://aws.example.org"},
    ),
    "cloud_project": ("CloudAccount", {"cloud": "google", "credentials": "env:GOOGLE", "project": "acme-prod-1"}),
    "stack": (
        "Stack",
        {
            "cloud_account": "prod", "cloud_region": "eu-central-1", "region": "europe-west1", "approval": "by_hand",
            "network": {
                "vpc": "vpc-0a1b2c3d", "subnets": ["subnet-0a1b2c3d", "subnet-1a1b2c3d"],
                "client_networks": ["0.0.0.0/0"], "log_bucket": "logs", "zones": {"us-central1": "us-central1-a"},
                "vpc_networks": ["10.0.0.0/16"],
            },
        },
    ),
    "certificate_authority": (
        "CertificateAuthority",
        {
            "directory_url": "https://ca.example.org/directory", "contacts": ["ops@example.org"], "terms_agreed": True,
            "external_key_id": "kid-1", "external_hmac_key": "A" * 40, "trusted_ca": AUTHORITY, "position": 3,
            "profile": "shortlived", "for_customers": False,
        },
    ),
    "automatic_certificate": ("Certificate", {"automatic": {"hostnames": ["shop.example.org"]}}),
    "address_pool": ("AddressPool", {"blocks": ["203.0.113.0/27"], "region": "us-central1"}),
    "static_ip": (
        "StaticIP",
        {
            "kind": "vip", "address": "203.0.113.1", "region": "us-central1", "pool": "addresses", "owner": "acme",
            "protected": True, "router_id": 7,
        },
    ),
    "static_ip_in_cloud": ("StaticIP", {"kind": "elastic", "stack": "aws-eu"}),
    "zone": (
        "Zone",
        {
            "domain": "example.net", "driver": "rfc2136", "server": "192.0.2.1:53", "key_name": "key.example",
            "key_algorithm": "hmac-sha512", "credentials": "env:TSIG", "resolvers": ["192.0.2.53"],
            "tags": {"customer": "acme"},
        },
    ),
    "zone_of_powerdns": (
        "Zone",
        {
            "domain": "example.net", "driver": "powerdns", "server": "https://dns.example.org:8081",
            "credentials": "env:PDNS",
        },
    ),
    "zone_in_stack": ("Zone", {"domain": "example.net", "driver": "route53", "stack": "aws-eu"}),
    "record": (
        "Record",
        {
            "zone": "operator/zone", "label": "www", "type": "A", "ttl": 300, "values": ["192.0.2.1"],
            "tags": {"customer": "acme"},
        },
    ),
    "record_of_address": ("Record", {"zone": "zone", "label": "www", "type": "A", "static_ip": "front"}),
    "record_of_balancer": ("Record", {"zone": "zone", "label": "www", "type": "CNAME", "load_balancer": "front"}),
    **{
        f"record_{kind.lower()}": ("Record", {"zone": "zone", "label": label, "type": kind, "values": [value]})
        for kind, label, value in (
            ("AAAA", "www", "2001:db8::1"), ("CNAME", "www", "web.example.org."), ("MX", "mail", "10 mx.example.org."),
            ("TXT", "_dmarc", '"v=DMARC1; p=none"'), ("SRV", "_sip._tcp", "10 5 5060 sip.example.org."),
            ("CAA", "www", '0 issue "ca.example.org"'), ("NS", "sub", "ns1.example.org."),
        )
    },
}  # fmt: skip
