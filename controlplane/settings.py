"""Wiring of Django: every setting that differs between places is read from the environment here, nowhere else."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from csp.constants import SELF
from django.core.exceptions import ImproperlyConfigured

from controlplane.database import database

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("SPILLWAY_VAR", BASE_DIR / "var"))

# Development is what a person gets who sets nothing; production must say so and then must bring its secrets.
DEVELOPMENT = os.environ.get("SPILLWAY_ENV", "development") == "development"
DEBUG = os.environ.get("SPILLWAY_DEBUG", "") == "1"
DEVELOPMENT_SECRET = "development-only-secret-never-used-in-production"  # noqa: S105 - refused below outside development
SECRET_KEY = os.environ.get("SPILLWAY_SECRET_KEY", DEVELOPMENT_SECRET)
# Earlier secrets, separated by commas: what was sealed with them is still opened (docs/monitoring.md).
SECRET_KEY_FALLBACKS = [key for key in os.environ.get("SPILLWAY_SECRET_KEY_FALLBACKS", "").split(",") if key]
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
# Numbered peppers of API token digests, newest first: "2:abc,1:old".
TOKEN_PEPPERS = dict(
    entry.split(":", 1) for entry in os.environ.get("SPILLWAY_TOKEN_PEPPERS", f"1:{SECRET_KEY}").split(",")
)
if not DEVELOPMENT and SECRET_KEY == DEVELOPMENT_SECRET:
    raise ImproperlyConfigured("Set SPILLWAY_SECRET_KEY: the development secret is refused outside development.")

ALLOWED_HOSTS = os.environ.get("SPILLWAY_ALLOWED_HOSTS", "127.0.0.1,localhost,testserver").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in os.environ.get("SPILLWAY_ORIGINS", "").split(",") if origin]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "template_partials",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.usersessions",
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
    "apps.dns",
    "apps.capacity",
    "apps.schedules",
    "apps.retries",
    "apps.api",
    "apps.web",
    "apps.cli",
]

# Threads of one process of the web server, of which one is kept for who asks whether it lives; 0 where nobody counts.
WEB_THREADS = int(os.environ.get("SPILLWAY_WEB_THREADS", "0"))
MIDDLEWARE = [
    "apps.core.requests.RequestIdMiddleware",
    "apps.core.threads.OneThreadFree",
    "django.middleware.security.SecurityMiddleware",
    "apps.web.methods.GetAndPostOnly",
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
    "apps.web.session_age.SessionAge",
    "apps.web.second_factor.SecondFactorRequired",
    "apps.core.keys.KeyFits",
    "apps.api.v1.door.ApiDoor",
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
                "apps.web.your_account.who_looks",
            ],
        },
    }
]

DATABASES = {"default": database(os.environ.get("SPILLWAY_DATABASE_URL", f"sqlite:///{VAR_DIR / 'spillway.sqlite3'}"))}

AUTH_USER_MODEL = "accounts.User"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
# A session ends so long after the last request, and at the latest so long after signing in (apps/web/session_age.py).
SESSION_COOKIE_AGE = 2 * 3600
SESSION_GREATEST_AGE = 12 * 3600
LOGIN_URL = "web:sign-in"
LOGIN_REDIRECT_URL = "web:overview"
LOGOUT_REDIRECT_URL = "web:sign-in"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not DEVELOPMENT
CSRF_FAILURE_VIEW = "apps.web.errors.csrf_failure"

# Who has no second factor sets one up before anything else: "operators", "everyone", or "" for nobody.
REQUIRE_SECOND_FACTOR = os.environ.get("SPILLWAY_REQUIRE_SECOND_FACTOR", "")
if REQUIRE_SECOND_FACTOR not in {"", "operators", "everyone"}:
    raise ImproperlyConfigured("SPILLWAY_REQUIRE_SECOND_FACTOR is operators, everyone or empty.")
ACCOUNT_ADAPTER = "apps.accounts.allauth_adapter.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Spillway] "
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 600
# allauth counts in the cache, which may forget; apps/accounts/sign_in.py counts in the database.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_FORMS = {
    "login": "apps.web.sign_in_forms.SignInForm",
    "change_password": "apps.web.sign_in_forms.ChangePassword",
    "set_password": "apps.web.sign_in_forms.FirstPassword",
    "reset_password": "apps.web.sign_in_forms.AskForReset",
    "reset_password_from_key": "apps.web.sign_in_forms.PasswordByLink",
}
MFA_ADAPTER = "apps.accounts.allauth_adapter.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_RECOVERY_CODES_SHOW_ONCE = True
MFA_RATE_LIMITS = False
MFA_TOTP_ISSUER = "Spillway"
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_FORMS = {
    "authenticate": "apps.web.sign_in_forms.GiveCode",
    "reauthenticate": "apps.web.sign_in_forms.GiveCodeAgain",
    "add_webauthn": "apps.web.sign_in_forms.AddPasskey",
    "edit_webauthn": "apps.web.sign_in_forms.RenamePasskey",
    "authenticate_webauthn": "apps.web.sign_in_forms.GivePasskey",
    "login_webauthn": "apps.web.sign_in_forms.SignInWithPasskey",
    "reauthenticate_webauthn": "apps.web.sign_in_forms.GivePasskeyAgain",
}
# Without an address mails go to the log, and pages send people to an operator instead of promising a mail.
MAILS = bool(os.environ.get("SPILLWAY_EMAIL_URL", ""))
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if MAILS else 'console'}.EmailBackend"
if MAILS:
    # smtp://user:password@host:port?tls=1 starts TLS, smtps:// begins with it.
    _mail = urlsplit(os.environ["SPILLWAY_EMAIL_URL"])
    EMAIL_HOST, EMAIL_PORT = _mail.hostname or "localhost", _mail.port or (465 if _mail.scheme == "smtps" else 25)
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
    EMAIL_USE_SSL, EMAIL_USE_TLS = _mail.scheme == "smtps", "tls=1" in _mail.query
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("SPILLWAY_EMAIL_FROM", "spillway@localhost")
# OpenID Connect: one provider, known by its issuer; people connect by a verified e-mail only when this says so.
OIDC_ISSUER = os.environ.get("SPILLWAY_OIDC_ISSUER", "").rstrip("/")
OIDC_NAME = os.environ.get("SPILLWAY_OIDC_NAME", "OpenID Connect")
SOCIALACCOUNT_ADAPTER = "apps.web.sign_in_openid.OpenIDAdapter"
OIDC_CONNECT_BY_EMAIL = os.environ.get("SPILLWAY_OIDC_CONNECT_BY_EMAIL", "") == "1"
SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "APPS": [
            {
                "provider_id": "sso",
                "name": OIDC_NAME,
                "client_id": os.environ.get("SPILLWAY_OIDC_CLIENT_ID", ""),
                "secret": os.environ.get("SPILLWAY_OIDC_CLIENT_SECRET", ""),
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
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "frontend" / "static"]
WHITENOISE_USE_FINDERS = DEVELOPMENT
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
    "DEFAULT_AUTHENTICATION_CLASSES": ["apps.api.v1.authentication.BearerToken"],
    "DEFAULT_PERMISSION_CLASSES": ["apps.api.v1.permissions.MayCall"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "apps.api.v1.parsers.StrictJSONParser",
        "apps.api.v1.parsers.MergePatchParser",
        "apps.api.v1.parsers.StrictYAMLParser",
        "apps.api.v1.parsers.OldYAMLParser",
    ],
    "EXCEPTION_HANDLER": "apps.api.v1.problems.problem_response",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_SCHEMA_CLASS": "apps.api.v1.openapi.Written",
}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
}
# Off for measurements: a single account then may ask as often as it can.
API_RATE_LIMITS = os.environ.get("SPILLWAY_API_RATE_LIMITS", "on") != "off"

REDIS_URL = os.environ.get("SPILLWAY_REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {
    "default": {
        "BACKEND": "apps.core.caching.ForgivingRedisCache",
        "LOCATION": REDIS_URL,
        "KEY_PREFIX": "spillway",
        "OPTIONS": {"socket_connect_timeout": 0.5, "socket_timeout": 0.5},
    }
}
CELERY_BROKER_URL = REDIS_URL
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
}
# Threads of one process that waits for receivers, name servers and clouds, and of one that carries out capacity tests.
COURIER_THREADS = int(os.environ.get("SPILLWAY_COURIER_THREADS", "28"))
TESTER_THREADS = int(os.environ.get("SPILLWAY_TESTER_THREADS", "8"))
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "apps.rollouts.tasks.*": {"queue": "push"},
    "apps.stacks.tasks.read_stack": {"queue": "clouds"},
    "apps.stacks.tasks.*": {"queue": "terraform"},
    "apps.dns.tasks.*": {"queue": "dns"},
    "apps.definitions.tasks.*": {"queue": "proofs"},
    "apps.webhooks.tasks.*": {"queue": "webhooks"},
    "apps.schedules.tasks.*": {"queue": "schedules"},
    "apps.capacity.tasks.*": {"queue": "capacity"},
}

# Capacity tests: above so many requests/s a run waits for an operator's approval; so many run at once,
# whoever's, of which one account has less than half.
TEST_APPROVAL_RATE = int(os.environ.get("SPILLWAY_TEST_APPROVAL_RATE", "1000"))
TEST_RUNS_AT_ONCE = int(os.environ.get("SPILLWAY_TEST_RUNS_AT_ONCE", "5"))

# Stacks: the program that plans and applies (terraform, tofu, or memory for looking at pages), where it finds the
# state that this console keeps, how many stacks a worker plans or applies side by side (of a cloud account one, since
# each may need a gigabyte), and seconds: for which changes wait for each other, between two looks for drift, after
# which a worker that died is missed, and after which a lock of which nothing is heard is taken away.
TERRAFORM_BIN = os.environ.get("TERRAFORM_BIN", "terraform")
STATE_URL = os.environ.get("SPILLWAY_STATE_URL", "http://127.0.0.1:8000").rstrip("/")
STACK_RUNS_AT_ONCE = int(os.environ.get("SPILLWAY_STACK_RUNS_AT_ONCE", "2"))
STACK_COALESCE_S = float(os.environ.get("SPILLWAY_STACK_COALESCE_S", "5"))
STACK_CHECK_S = float(os.environ.get("SPILLWAY_STACK_CHECK_S", "3600"))
STACK_LEASE_S = float(os.environ.get("SPILLWAY_STACK_LEASE_S", "15"))
STACK_LOCK_GRACE_S = float(os.environ.get("SPILLWAY_STACK_LOCK_GRACE_S", "120"))
if not DEVELOPMENT and urlsplit(STATE_URL).scheme != "https" and urlsplit(STATE_URL).hostname not in LOOPBACK:
    raise ImproperlyConfigured("SPILLWAY_STATE_URL begins with https:// unless it leads to this very machine.")

# PEM files with which the control plane shows itself to agents over HTTPS.
AGENT_CA_FILE = os.environ.get("SPILLWAY_AGENT_CA", "")
AGENT_CERTIFICATE_FILE = os.environ.get("SPILLWAY_AGENT_CERTIFICATE", "")
AGENT_KEY_FILE = os.environ.get("SPILLWAY_AGENT_KEY", "")

# Networks that webhooks and proofs of hostnames may call although they are private or loopback, comma-separated CIDR.
OUTBOUND_NETWORKS = [
    network
    for network in os.environ.get("SPILLWAY_WEBHOOK_NETWORKS", "127.0.0.0/8,::1/128" if DEVELOPMENT else "").split(",")
    if network
]
# Who is asked whether a hostname is proved ("address" or "address:port"); empty for the machine's own resolvers.
RESOLVERS = [entry for entry in os.environ.get("SPILLWAY_RESOLVERS", "").split(",") if entry]
# Seconds between two looks at what the server of a DNS zone serves.
DNS_LOOK_S = int(os.environ.get("SPILLWAY_DNS_LOOK_S", "60"))
# Days for which a released hostname rests before another account may claim it.
HOSTNAME_GRACE_DAYS = int(os.environ.get("SPILLWAY_HOSTNAME_GRACE_DAYS", "7"))
# Days after which what a capacity test found counts as old.
CAPACITY_STALE_DAYS = int(os.environ.get("SPILLWAY_CAPACITY_STALE_DAYS", "30"))

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {
            "class": "apps.core.redaction.WithoutSecrets",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("SPILLWAY_LOG_LEVEL", "INFO")},
}
