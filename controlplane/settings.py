"""Every setting that differs between installations is read from the environment here, nowhere else."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from csp.constants import SELF

from apps.core.stores import redis_url
from controlplane import environment, logs, shapes
from controlplane.database import PATIENCE, databases, kind

BASE_DIR = Path(__file__).resolve().parent.parent

environment.begin()
environment.group("The installation")
# Development is what a person gets who sets nothing; production must say so and then must bring its secrets.
DEVELOPMENT = (
    environment.one_of(
        "SPILLWAY_ENV", ("development", "production"), "`production` refuses to start on secrets meant for development"
    )
    == "development"
)
VAR_DIR = Path(
    environment.text(
        "SPILLWAY_VAR", str(BASE_DIR / "var"), "directory of what is made at run time", shape=shapes.PATH, shown="var"
    )
)
STATIC_ROOT = environment.text(
    "SPILLWAY_STATIC_ROOT",
    str(VAR_DIR / "static"),
    "directory of what `manage.py collectstatic` collected; packages and images bring their own",
    shape=shapes.PATH,
    shown="var/static",
)
DEBUG = environment.flag("SPILLWAY_DEBUG", "`1` shows Django's page for errors; never in production")
DEVELOPMENT_SECRET = "development-only-secret-never-used-in-production"  # noqa: S105 - refused below outside development
SECRET_KEY = environment.text(
    "SPILLWAY_SECRET_KEY",
    DEVELOPMENT_SECRET,
    "seals private keys and sessions; the same on every console",
    shape=shapes.SECRET,
    shown="",
    secret=True,
)
SECRET_KEY_FALLBACKS = environment.listed(
    "SPILLWAY_SECRET_KEY_FALLBACKS",
    "",
    "earlier keys, separated by commas: what they sealed is still opened ([rotation](monitoring.md#keys-at-rest))",
    secret=True,
)
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
TOKEN_PEPPERS = dict(
    entry.lstrip().split(":", 1)
    for entry in environment.text(
        "SPILLWAY_TOKEN_PEPPERS",
        f"1:{SECRET_KEY}",
        "numbered peppers of the digests of API tokens, newest first: `2:new,1:old`",
        shape=shapes.PEPPERS,
        shown="1:SPILLWAY_SECRET_KEY",
        secret=True,
    ).split(",")
)
if not DEVELOPMENT and SECRET_KEY == DEVELOPMENT_SECRET:
    environment.wrong(
        "SPILLWAY_SECRET_KEY",
        f"Set SPILLWAY_SECRET_KEY to {shapes.SECRET.words}, such as {shapes.SECRET.example}: the development secret is "
        "refused outside development.",
    )

ALLOWED_HOSTS = environment.listed(
    "SPILLWAY_ALLOWED_HOSTS",
    "127.0.0.1,localhost,testserver",
    "names by which the console is called",
    shape=shapes.HOSTS,
)
CSRF_TRUSTED_ORIGINS = environment.listed(
    "SPILLWAY_ORIGINS",
    "",
    "origins of the pages behind a proxy that ends TLS: `https://console.example`",
    shape=shapes.ORIGINS,
)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    *("rest_framework", "django_filters"),
    "template_partials",
    "csp",
    *("allauth", "allauth.account", "allauth.mfa", "allauth.usersessions"),
    *("allauth.socialaccount", "allauth.socialaccount.providers.openid_connect"),
    "apps.core",
    "apps.accounts",
    "apps.audit",
    "apps.webhooks",
    "apps.members",
    "apps.fleet",
    "apps.definitions",
    "apps.observe",
    "apps.rollouts",
    "apps.stacks",
    "apps.enrolment",
    "apps.dns",
    *("apps.issuing", "apps.exporting"),
    "apps.logs",
    "apps.capacity",
    "apps.canaries",
    "apps.schedules",
    "apps.replacements",
    "apps.alerts",
    "apps.status",
    "apps.system",
    "apps.retries",
    "apps.api",
    "apps.web",
    "apps.cli",
]

WEB_THREADS = environment.whole(
    "SPILLWAY_WEB_THREADS", 0, "threads of a web process, of which one is kept for `/healthz`; 0 keeps none"
)
MIDDLEWARE = [
    "apps.core.requests.RequestIdMiddleware",
    "apps.system.http_times.Counted",
    "apps.core.concurrency.threads.OneThreadFree",
    "django.middleware.security.SecurityMiddleware",
    "controlplane.methods.GetAndPostOnly",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "apps.web.sign_in.session_age.SessionAge",
    "apps.web.sign_in.second_factor.SecondFactorRequired",
    "apps.core.secrets.keys.KeyFits",
    "apps.api.v1.protocol.middleware.ApiMiddleware",
]

ROOT_URLCONF = "controlplane.urls"
WSGI_APPLICATION = "controlplane.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "frontend" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "apps.web.sign_in.your_account.who_looks",
                "apps.web.kit.help.help_link",
            ],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

environment.group("Database and Redis")
DATABASES = databases(VAR_DIR / "spillway.sqlite3")
REDIS_URL = environment.text(
    "SPILLWAY_REDIS_URL",
    "redis://127.0.0.1:6379/0",
    "wakes workers and carries live numbers; it may lose everything. `rediss://` speaks TLS, "
    "`redis+sentinel://` [asks Sentinels](topologies.md#redis-with-sentinels)",
    shape=shapes.REDIS,
    secret=True,
)
if kind() not in PATIENCE:
    environment.wrong("SPILLWAY_PROCESS", f"Set SPILLWAY_PROCESS to {' or '.join(PATIENCE)}, or leave it out.")
# Celery would follow this one before ours, to whatever broker it names.
if (_other_broker := os.environ.get("CELERY_BROKER_URL")) and not shapes.BROKER.fits(_other_broker):
    environment.wrong(
        "CELERY_BROKER_URL",
        f"Set CELERY_BROKER_URL to {shapes.BROKER.words}, such as {shapes.BROKER.example}, or leave it out.",
    )

AUTH_USER_MODEL = "accounts.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# A session ends so long after the last request, at the latest so long after signing in (web/sign_in/session_age.py).
SESSION_COOKIE_AGE = 2 * 3600
SESSION_GREATEST_AGE = 12 * 3600
LOGIN_URL = "web:sign-in"
LOGIN_REDIRECT_URL = "web:overview"
LOGOUT_REDIRECT_URL = "web:sign-in"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_FAILURE_VIEW = "apps.web.kit.errors.csrf_failure"

environment.group("Signing in and mail")
REQUIRE_SECOND_FACTOR = environment.one_of(
    "SPILLWAY_REQUIRE_SECOND_FACTOR",
    ("", "operators", "everyone"),
    "who sets up a second factor before anything else: `operators`, `everyone`; nobody by default",
)
ACCOUNT_ADAPTER = "apps.accounts.sign_in.allauth_adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Spillway] "
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
# allauth counts in the cache, which may forget; apps/accounts/sign_in/limits.py counts in the database.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_FORMS = {
    "login": "apps.web.sign_in.forms.SignInForm",
    "change_password": "apps.web.sign_in.forms.ChangePassword",
    "set_password": "apps.web.sign_in.forms.FirstPassword",
    "reset_password": "apps.web.sign_in.forms.AskForReset",
    "reset_password_from_key": "apps.web.sign_in.forms.PasswordByLink",
}
MFA_ADAPTER = "apps.accounts.sign_in.allauth_adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_RATE_LIMITS = False
MFA_TOTP_ISSUER = "Spillway"
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "apps.web.sign_in.forms.GiveCode",
    "reauthenticate": "apps.web.sign_in.forms.GiveCodeAgain",
    "add_webauthn": "apps.web.sign_in.forms.AddPasskey",
    "edit_webauthn": "apps.web.sign_in.forms.RenamePasskey",
    "authenticate_webauthn": "apps.web.sign_in.forms.GivePasskey",
    "login_webauthn": "apps.web.sign_in.forms.SignInWithPasskey",
    "reauthenticate_webauthn": "apps.web.sign_in.forms.GivePasskeyAgain",
}
# Without an address mails go to the log, and pages send people to an operator instead of promising a mail.
_mail_url = environment.text(
    "SPILLWAY_EMAIL_URL",
    "",
    "`smtp://user:password@host:port?tls=1` starts TLS, `smtps://` begins with it",
    shape=shapes.MAIL,
    secret=True,
)
MAILS = bool(_mail_url)
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if MAILS else 'console'}.EmailBackend"
if MAILS:
    _mail = urlsplit(_mail_url)
    EMAIL_HOST, EMAIL_PORT = _mail.hostname or "localhost", _mail.port or (465 if _mail.scheme == "smtps" else 25)
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
    EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.scheme == "smtps", "tls=1" in _mail.query
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = environment.text(
    "SPILLWAY_EMAIL_FROM", "spillway@localhost", "sender of those mails", shape=shapes.ADDRESS
)
CONSOLE_URL = environment.text(
    "SPILLWAY_CONSOLE_URL",
    (CSRF_TRUSTED_ORIGINS or ["http://127.0.0.1:8000"])[0],
    "where people open the console; links in alerts begin with it",
    shape=shapes.WEB,
).rstrip("/")
OIDC_ISSUER = environment.text(
    "SPILLWAY_OIDC_ISSUER", "", "issuer of one OpenID Connect provider", shape=shapes.WEB
).rstrip("/")
_OIDC_CLIENT_ID = environment.text("SPILLWAY_OIDC_CLIENT_ID", "", "the client's id at the provider")
_OIDC_CLIENT_SECRET = environment.text("SPILLWAY_OIDC_CLIENT_SECRET", "", "and its secret", secret=True)
OIDC_NAME = environment.text("SPILLWAY_OIDC_NAME", "OpenID Connect", "what its button says")
SOCIALACCOUNT_ADAPTER = "apps.web.sign_in.openid.OpenIDAdapter"
OIDC_CONNECT_BY_EMAIL = environment.flag(
    "SPILLWAY_OIDC_CONNECT_BY_EMAIL", "`1` connects people whose verified e-mail the provider names"
)
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": _OIDC_CLIENT_ID,
                "secret": _OIDC_CLIENT_SECRET,
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "frontend" / "static"]
STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder", "apps.web.bundles.JoinedFiles"]
STORAGES = {"staticfiles": {"BACKEND": "apps.web.bundles.HashedFiles"}}
WHITENOISE_USE_FINDERS = DEVELOPMENT
# The site of the documents, where `make docs` has built it, is served as it lies there.
SITE = BASE_DIR / "var" / "documents"
WHITENOISE_ROOT = SITE if (SITE / "docs" / "index.html").exists() else None
WHITENOISE_INDEX_FILE = True
DOCS_URL = environment.text(
    "SPILLWAY_DOCS_URL",
    "/docs/" if WHITENOISE_ROOT else "",
    "where the documents stand that pages link to with `?`",
    shape=shapes.PLACE,
    shown="/docs/ where make docs has built them, else no links",
)
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 16 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.api.v1.protocol.authentication.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.api.v1.protocol.permissions.MayCall"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "apps.api.v1.protocol.parsers.StrictJSONParser",
        "apps.api.v1.protocol.parsers.MergePatchParser",
        "apps.api.v1.protocol.parsers.StrictYAMLParser",
        "apps.api.v1.protocol.parsers.OldYAMLParser",
    ],
    "EXCEPTION_HANDLER": "apps.api.v1.protocol.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_SCHEMA_CLASS": "apps.api.v1.openapi.Written",
}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}
environment.group("API and workers")
API_RATE_LIMITS = (
    environment.one_of("SPILLWAY_API_RATE_LIMITS", ("on", "off"), "`off` lets an account ask as often as it can")
    == "on"
)

CACHES = {
    "default": {
        "BACKEND": "apps.core.caching.ForgivingRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "spillway",
        "OPTIONS": {"socket_connect_timeout": 0.5, "socket_timeout": 0.5},
    }
}
_REDIS = redis_url.read(REDIS_URL)
CELERY_BROKER_URL = _REDIS.broker()
CELERY_BROKER_USE_SSL = _REDIS.of_tls() or None
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    # A lost wake-up costs at most one sweep; a request must never hang because Redis does.
    "max_retries": 0,
    "socket_connect_timeout": 1,
    "socket_timeout": 5,
    "visibility_timeout": 600,
    **redis_url.KEEPALIVE,
    **_REDIS.broker_options(socket_connect_timeout=1, socket_timeout=1),
}
WEBHOOK_WORKER_THREADS = environment.whole(
    "SPILLWAY_WEBHOOK_WORKER_THREADS", 28, "threads of a process that waits for receivers, name servers and clouds", 1
)
LOADGEN_THREADS = environment.whole(
    "SPILLWAY_LOADGEN_THREADS", 8, "threads of a process that carries out capacity tests", 1
)
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "apps.rollouts.tasks.*": {"queue": "push"},
    "apps.enrolment.tasks.*": {"queue": "push"},
    "apps.stacks.tasks.read_stack": {"queue": "clouds"},
    "apps.stacks.tasks.*": {"queue": "terraform"},
    "apps.dns.tasks.*": {"queue": "dns"},
    "apps.definitions.tasks.*": {"queue": "verifications"},
    **{f"apps.{app}.tasks.*": {"queue": "verifications"} for app in ("exporting", "issuing")},
    "apps.webhooks.tasks.*": {"queue": "webhooks"},
    "apps.schedules.tasks.*": {"queue": "schedules"},
    "apps.capacity.tasks.*": {"queue": "capacity"},
}

environment.group("Capacity tests")
TEST_APPROVAL_RATE = environment.whole(
    "SPILLWAY_TEST_APPROVAL_RATE", 1000, "requests/s above which a run waits for an operator's approval"
)
TEST_RUNS_AT_ONCE = environment.whole(
    "SPILLWAY_TEST_RUNS_AT_ONCE", 5, "runs at once, of which one account has less than half", 1
)
CAPACITY_STALE_DAYS = environment.whole(
    "SPILLWAY_CAPACITY_STALE_DAYS", 30, "days after which what a capacity test found counts as old"
)

environment.group("Stacks")
TERRAFORM_BIN = environment.text(
    "TERRAFORM_BIN",
    "terraform",
    "the program that plans and applies; `memory` applies nothing, for looking at pages",
    shape=shapes.WORD,
)
STATE_URL = environment.text(
    "SPILLWAY_STATE_URL",
    "http://127.0.0.1:8000",
    "where Terraform finds the state that this console keeps",
    shape=shapes.WEB,
).rstrip("/")
STACK_RUNS_AT_ONCE = environment.whole(
    "SPILLWAY_STACK_RUNS_AT_ONCE", 2, "stacks that a worker plans or applies at once, each with up to a gigabyte", 1
)
STACK_COALESCE_S = environment.seconds("SPILLWAY_STACK_COALESCE_S", 5, "seconds for which changes wait for each other")
STACK_CHECK_S = environment.seconds("SPILLWAY_STACK_CHECK_S", 3600, "seconds between two looks for drift")
STACK_LEASE_S = environment.seconds("SPILLWAY_STACK_LEASE_S", 15, "seconds after which a worker that died is missed")
STACK_LOCK_GRACE_S = environment.seconds(
    "SPILLWAY_STACK_LOCK_GRACE_S", 120, "seconds of silence after which a lock is taken away"
)
if not DEVELOPMENT and urlsplit(STATE_URL).scheme != "https" and urlsplit(STATE_URL).hostname not in LOOPBACK:
    environment.wrong(
        "SPILLWAY_STATE_URL",
        "Set SPILLWAY_STATE_URL to a URL with https://, such as https://console.example, unless it leads to this very "
        "machine.",
    )

environment.group("Agents")
AGENT_CA_FILE = environment.text(
    "SPILLWAY_AGENT_CA", "", "PEM file: the authority of the agents' certificates", shape=shapes.PATH
)
AGENT_CERTIFICATE_FILE = environment.text(
    "SPILLWAY_AGENT_CERTIFICATE", "", "PEM file: the console's certificate", shape=shapes.PATH
)
AGENT_KEY_FILE = environment.text("SPILLWAY_AGENT_KEY", "", "PEM file: its key", shape=shapes.PATH)
CONSOLE_CA_FILE = environment.text(
    "SPILLWAY_CONSOLE_CA",
    "",
    "PEM file: the certificate of the console's https, or of its authority; nodes that enrol believe no other",
    shape=shapes.PATH,
)

environment.group("Request logs")
LOGS_URL = environment.text(
    "SPILLWAY_LOGS_URL",
    f"logs+file://{VAR_DIR}/logs",
    "where request lines are kept: `logs+file:///folder`, which every console reaches; "
    "`logs+s3://bucket/prefix?region=…` ([more](request-logs.md#in-a-bucket)); `clickhouse+https://user:password@"
    "host:8443/database` ([more](request-logs.md#in-clickhouse)); `memory://name` forgets them",
    shape=shapes.LOGS,
    shown="logs+file://var/logs",
)

environment.group("Webhooks, hostnames and zones")
OUTBOUND_NETWORKS = environment.listed(
    "SPILLWAY_WEBHOOK_NETWORKS",
    "127.0.0.0/8,::1/128" if DEVELOPMENT else "",
    "private networks that webhooks, verifications, key sets, target lists and ACME may call; in production none",
    shape=shapes.NETWORKS,
)
RESOLVERS = environment.listed(
    "SPILLWAY_RESOLVERS",
    "",
    "name servers (`address` or `address:port`) that hostnames and servers are looked up at; else the machine's",
    shape=shapes.SERVERS,
)
COUNTRIES = environment.text(
    "SPILLWAY_COUNTRIES", "", "database of countries (.mmdb), for network lists that name some", shape=shapes.PATH
)
REGISTRIES = environment.text(
    "SPILLWAY_REGISTRIES", "", "JSON file of what servers come from and definitions go to", shape=shapes.PATH
)
DNS_LOOK_S = environment.whole("SPILLWAY_DNS_LOOK_S", 60, "seconds between two looks at what a zone's server serves", 1)
HOSTNAME_COOLDOWN_DAYS = environment.whole(
    "SPILLWAY_HOSTNAME_COOLDOWN_DAYS", 7, "days before another account may claim a released hostname"
)

environment.group("Logs")
LOGGING = logs.configuration()
environment.refuse()
