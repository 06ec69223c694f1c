"""The numbers for AWS: what Elastic Load Balancing and Route 53 take at most.

Source: Elastic Load Balancing API reference, version 2015-12-01 (the service model that botocore carries), and the user
guides' pages "Quotas for your Application Load Balancers" and "Condition types for listener rules".
"""

from __future__ import annotations

NAME = 32
ACCELERATOR_NAME = 64
CONDITION_TEXT = 128
"""Longest host name, path pattern and header value of a condition; also the longest host and path of a redirect."""
HEADER_NAME = 40
VALUES_PER_CONDITION = 3
VALUES_PER_RULE = 5
BODY = 1024
TARGET_GROUPS_PER_ACTION = 5
MAX_WEIGHT = 999
MAX_PRIORITY = 50_000
RULES = 100
"""Rules of one load balancer over all its listeners without default ones; a quota that AWS raises on request."""
CERTIFICATES = 25
"""Certificates of one load balancer without default ones; a quota that AWS raises on request."""
SUBNETS_OF_ALB = 2
CHECK_INTERVAL_S = (5, 300)
CHECK_TIMEOUT_S = (2, 120)
CHECK_COUNT = (2, 10)
CHECK_STATUS = (200, 499)
SLOW_START_S = (30, 900)
IDLE_TIMEOUT_S = (1, 4000)
CONNECT_TIMEOUT_S = 10
"""How long an ALB tries to connect to a target ("HTTP 504" in the guide's troubleshooting); it is fixed."""
